// RetrainTriggers: when the server retrains a personal model by itself, and how (models/training/retrainer.h).
#ifndef FOLIOT_ANSWER_PERSONAL_SERVICE_RETRAIN_TRIGGERS_H_
#define FOLIOT_ANSWER_PERSONAL_SERVICE_RETRAIN_TRIGGERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "foundation/base/time.h"

namespace foliot {

// In the folder of a version: a server has made it, compared it with the one before and taken it.
inline constexpr const char* kMadeByServer = "made_by_server";

struct RetrainTriggers {
  static constexpr Duration kEveryMin = Duration::seconds(60);

  bool on_drift = false;            // when PersonalStatistics::retrain says why
  std::optional<Duration> every{};  // so long after the last retraining
  uint64_t after_observations = 0;  // so many since the last retraining; 0: never
  std::vector<std::string>
      command{};  // {folder} and {state} stand for the model's and its log's; empty: `foliot retrain`
  Duration time_limit = Duration::seconds(7200);  // then it is killed

  bool any() const { return on_drift || every || after_observations > 0; }
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_SERVICE_RETRAIN_TRIGGERS_H_
