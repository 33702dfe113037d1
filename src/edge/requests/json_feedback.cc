#include "edge/requests/json_feedback.h"

#include <fmt/format.h>

#include <vector>

#include "foundation/json/bounded_json.h"

namespace foliot {
namespace {

using FeedbackJson = nlohmann::json;

// Deeper lists than any tensor has.
constexpr int kLabelDepthMax = 32;
constexpr JsonBounds kFeedbackBounds{
    .bytes_max = kFeedbackBytesMax, .depth_max = kLabelDepthMax + 1, .values_max = kFeedbackBytesMax};

Status wrong_member(std::string_view member, std::string_view wanted) {
  return Status::invalid_argument(fmt::format("'{}' must be {}", member, wanted));
}

Status read_label(const FeedbackJson& value, int depth, std::vector<double>& label) {
  if (value.is_boolean()) return label.push_back(value.get<bool>() ? 1 : 0), Status();
  if (value.is_number()) return label.push_back(value.get<double>()), Status();
  if (!value.is_array() || depth == kLabelDepthMax) return wrong_member("label", "a number, or lists of numbers");
  for (const FeedbackJson& element : value) FOLIOT_RETURN_IF_ERROR(read_label(element, depth + 1, label));
  return Status();
}

Status read_loss(const FeedbackJson& value, Feedback& feedback) {
  if (value.is_number()) return feedback.losses.emplace_back("", value.get<double>()), Status();
  if (!value.is_object() || value.empty()) {
    return wrong_member("loss", "a number from 0 to 1, or an object with one for each of some models");
  }
  for (const auto& [model, loss] : value.items()) {
    if (!loss.is_number()) return wrong_member("loss", "an object of numbers from 0 to 1");
    feedback.losses.emplace_back(model, loss.get<double>());
  }
  return Status();
}

}  // namespace

Result<Feedback> parse_feedback(std::string_view body) {
  FOLIOT_ASSIGN_OR_RETURN(const FeedbackJson json, parse_bounded_json(body, kFeedbackBounds));
  if (!json.is_object()) {
    return Status::invalid_argument("the body must be a JSON object with a 'feedback_id' and a 'label' or a 'loss'");
  }
  Feedback feedback;
  for (const auto& [member, value] : json.items()) {
    if (member == "feedback_id") {
      if (!value.is_string()) return wrong_member(member, "a text: the parameter of that name of an answer");
      feedback.feedback_id = value.get<std::string>();
    } else if (member == "label") {
      FOLIOT_RETURN_IF_ERROR(read_label(value, 0, feedback.label));
    } else if (member == "loss") {
      FOLIOT_RETURN_IF_ERROR(read_loss(value, feedback));
    } else {
      return Status::invalid_argument(
          fmt::format("unknown member '{}'; known are feedback_id, label and loss", member.substr(0, 64)));
    }
  }
  FOLIOT_RETURN_IF_ERROR(feedback.check());
  return feedback;
}

}  // namespace foliot
