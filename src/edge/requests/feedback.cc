#include "edge/requests/feedback.h"

#include <span>

namespace foliot {

Status Feedback::check() const {
  if (feedback_id.empty()) {
    return Status::invalid_argument("'feedback_id' must be there: the parameter of that name of an answer");
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
