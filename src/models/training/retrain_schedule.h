// RetrainSchedule: when a personal model is retrained by its server: on drift, so long after the last time, or after so
// many observations since then (RetrainTriggers), and not before a version could be judged.
//
// A retraining after which the same version is served was of no use, and drift is still there: it is tried again when
// twice as many observations are there to learn from. One that failed is tried again after a pause, which doubles
// with each failure and is never shorter than the retraining was. So what is of no use takes a share of the time
// that falls.
//
// Threading: not thread-safe. Time is an argument.
#ifndef FOLIOT_MODELS_TRAINING_RETRAIN_SCHEDULE_H_
#define FOLIOT_MODELS_TRAINING_RETRAIN_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "answer/personal/service/retrain_triggers.h"
#include "foundation/base/time.h"

namespace foliot {

enum class RetrainOutcome : uint8_t { kTaken, kNotTaken, kFailed };

class RetrainSchedule {
 public:
  static constexpr Duration kPauseMin = Duration::seconds(60);
  static constexpr Duration kPauseMax = Duration::seconds(24 * 3600);

  // The model has these.
  struct Facts {
    std::string version{};
    std::string quality{};      // why the version is to be retrained; empty: it need not
    uint64_t observations = 0;  // since the last retraining before this schedule was made
    uint64_t of_version = 0;    // of these, since the version is served
    size_t withheld = 0;        // to compare versions on
  };

  // `last`: of the last retraining, or when the model was first served.
  RetrainSchedule(RetrainTriggers triggers, TimePoint last) : triggers_(std::move(triggers)), last_(last) {}

  // Why it is to be retrained now; empty: it is not.
  std::string why(TimePoint now, const Facts& facts) const;
  // One is over, which began then with these facts.
  void end(TimePoint began, const Facts& with, TimePoint ended, RetrainOutcome outcome);
  TimePoint last() const { return last_; }
  uint32_t failures() const { return failures_; }  // since the last one that did not fail

 private:
  RetrainTriggers triggers_;
  TimePoint last_;
  uint64_t observations_ = 0;  // at the last one
  // The last one whose version was not taken: the version that is served since then, and its observations.
  std::string kept_version_;
  uint64_t kept_observations_ = 0;
  uint32_t failures_ = 0;
  TimePoint not_before_ = TimePoint::from_nanoseconds(INT64_MIN);
};

}  // namespace foliot

#endif  // FOLIOT_MODELS_TRAINING_RETRAIN_SCHEDULE_H_
