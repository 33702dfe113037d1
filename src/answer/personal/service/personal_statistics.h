// PersonalStatistics: how good a personal model is, and whether it is to be retrained.
#ifndef FOLIOT_ANSWER_PERSONAL_SERVICE_PERSONAL_STATISTICS_H_
#define FOLIOT_ANSWER_PERSONAL_SERVICE_PERSONAL_STATISTICS_H_

#include <cstdint>
#include <string>

#include "answer/personal/weights/running_loss.h"
#include "answer/personal/weights/value_range.h"

namespace foliot {

// When a version is to be retrained. Losses are those of the last observations.
struct RetrainLimits {
  double loss_max = 0;               // 0: no limit
  uint64_t observations_max = 0;     // since training; 0: no limit
  uint64_t observations_min = 1000;  // of a loss, before it is compared with its limit
};

struct PersonalStatistics {
  std::string version{};
  uint64_t users = 0;
  uint64_t observations = 0;    // since the version is served
  uint64_t log_number = 0;      // of the last record that counts
  uint64_t trained_number = 0;  // of the last record that the version was trained on
  size_t withheld = 0;          // observations that versions are compared on
  RunningLoss overall{};        // squared errors, before each update
  RunningLoss pool{};           // of these, of the validation pool
  RunningLoss held_out{};       // by the weights that all others of the update gave
  ValueRange range{};           // of values that count: what was learned or asked for
  uint64_t outside = 0;         // observations that came with values beyond it, since the process began
  uint64_t users_outside = 0;   // users that have such values; where the range is learned
  bool has_drifted = false;
  bool finds_drift = false;   // false: there are too few losses to say whether it has
  uint64_t corrections = 0;   // of matrices, after many updates
  uint64_t builds = 0;        // of matrices of users that were not in the cache
  uint64_t cached_lists = 0;  // of topK, that were found in the cache
  // Empty: the version need not be retrained; else why.
  std::string retrain{};
};

// Why; empty: it need not.
std::string why_retrain(const PersonalStatistics& statistics, const RetrainLimits& limits);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_SERVICE_PERSONAL_STATISTICS_H_
