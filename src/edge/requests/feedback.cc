#include "edge/requests/feedback.h"

#include <algorithm>
#include <span>

namespace foliot {

Status Feedback::check() const {
  const bool names_versions =
      !losses.empty() && std::ranges::none_of(losses, [](const auto& loss) { return loss.first.empty(); });
  if (feedback_id.empty() && !names_versions) {
    return Status::invalid_argument(
        "'feedback_id' must be there: the parameter of that name of an answer; of a model with a rollback a 'loss' by "
        "version, such as {\"3\": 0.5}");
  }
  if (label.empty() == losses.empty()) return Status::invalid_argument("send either a 'label' or a 'loss'");
  return Status();
}

Observation Feedback::observation() const {
  Observation observation{.name = {}, .version = {}, .inputs = {}, .outputs = {}, .feedback_id = feedback_id};
  for (const auto& [model, loss] : losses) observation.losses.push_back({model, loss});
  if (losses.empty()) {
    observation.outputs.push_back({.name = {},
                                   .datatype = "FP64",
                                   .shape = {static_cast<int64_t>(label.size())},
                                   .bytes = std::as_bytes(std::span(label))});
  }
  return observation;
}

}  // namespace foliot
