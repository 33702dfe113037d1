#include "edge/jobs/offline_request.h"

#include <fmt/format.h>

#include <cmath>

#include "edge/jobs/request_member.h"
#include "foundation/json/bounded_json.h"

namespace foliot {
namespace {

constexpr size_t kInputsMax = 256;

Status take_inputs(const RequestJson& value, std::map<std::string, std::string>& to) {
  if (!value.is_object() || value.empty() || value.size() > kInputsMax) {
    return Status::invalid_argument(fmt::format(
        "'inputs' must be an object of 1 to {} paths by input, such as {{\"x\": \"rows.npy\"}}", kInputsMax));
  }
  for (const auto& input : value.items()) {
    FOLIOT_RETURN_IF_ERROR(take_text(input.value(), "inputs." + input.key(), to[input.key()]));
  }
  return Status();
}

Status take_member(const std::string& name, const RequestJson& value, OfflineRequest& request) {
  if (name == "task" || name == "model") {
    if (!request.name.empty()) return Status::invalid_argument("give 'task' or 'model', not both");
    request.is_task = name == "task";
    return take_text(value, name, request.name);
  }
  if (name == "inputs") return take_inputs(value, request.inputs);
  if (name == "output") return take_text(value, name, request.output);
  if (name == "accuracy") {
    return take_number(
        value, "'accuracy' must be a number from 0 to 1", [](double x) { return x >= 0 && x <= 1; }, request.accuracy);
  }
  if (name == "cost") {
    return take_number(
        value, "'cost' must be a number of dollars above 0", [](double x) { return x > 0 && std::isfinite(x); },
        request.cost);
  }
  return Status::invalid_argument(fmt::format(
      "'{}' is unknown; an offline job has 'task' or 'model', 'inputs', 'output', 'accuracy', 'cost', 'webhook'",
      name));
}

}  // namespace

Result<OfflineRequest> OfflineRequest::parse(std::string_view text) {
  FOLIOT_ASSIGN_OR_RETURN(const RequestJson json, parse_bounded_json(text));
  if (!json.is_object()) return Status::invalid_argument("an offline job must be a JSON object");
  OfflineRequest request;
  for (const auto& member : json.items()) FOLIOT_RETURN_IF_ERROR(take_member(member.key(), member.value(), request));
  if (request.name.empty()) return Status::invalid_argument("'task' or 'model' is missing");
  if (request.inputs.empty()) return Status::invalid_argument("'inputs' is missing");
  if (request.output.empty()) return Status::invalid_argument("'output' is missing");
  if (!request.is_task && (request.accuracy || request.cost)) {
    return Status::invalid_argument(
        fmt::format("'{}' is for tasks, and 'model' names a model", request.accuracy ? "accuracy" : "cost"));
  }
  return request;
}

}  // namespace foliot
