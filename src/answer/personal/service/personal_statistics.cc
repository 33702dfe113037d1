#include "answer/personal/service/personal_statistics.h"

#include <fmt/format.h>

namespace foliot {

std::string why_retrain(const PersonalStatistics& statistics, const RetrainLimits& limits) {
  if (statistics.has_drifted) return "items have drifted: losses are higher than when the version began to be served";
  const auto is_high = [&limits](const RunningLoss& loss) {
    return limits.loss_max > 0 && loss.count() >= limits.observations_min && loss.recent() > limits.loss_max;
  };
  const auto high = [&limits](const char* name, const RunningLoss& loss) {
    return fmt::format("the loss {} is {:.4g}, limit {}", name, loss.recent(), limits.loss_max);
  };
  if (is_high(statistics.pool)) return high("on the validation pool", statistics.pool);
  if (is_high(statistics.held_out)) return high("of held out observations", statistics.held_out);
  if (is_high(statistics.overall)) return high("before updates", statistics.overall);
  if (limits.observations_max > 0 && statistics.observations >= limits.observations_max) {
    return fmt::format("{} observations since the version is served, limit {}", statistics.observations,
                       limits.observations_max);
  }
  return "";
}

}  // namespace foliot
