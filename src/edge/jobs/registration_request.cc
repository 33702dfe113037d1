#include "edge/jobs/registration_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "edge/jobs/request_member.h"
#include "foundation/base/units.h"
#include "foundation/core/action.h"
#include "foundation/json/bounded_json.h"

namespace foliot {
namespace {

constexpr size_t kNameBytesMax = 64;
constexpr size_t kBatchSizesMax = 16;
constexpr std::array<std::string_view, 3> kPrecisions{"float32", "bfloat16", "int8"};
constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

// It becomes the name of a folder.
Status take_name(const RequestJson& value, const std::string& member, std::string& to) {
  FOLIOT_RETURN_IF_ERROR(take_text(value, member, to));
  const bool is_fit =
      to.size() <= kNameBytesMax && to.front() != '.' && to.find_first_not_of(kNameCharacters) == std::string::npos;
  if (is_fit) return Status();
  return Status::invalid_argument(
      fmt::format("'{}' must have 1 to {} letters, digits and '_.-', and not begin with a dot, not {}", member,
                  kNameBytesMax, shown_json(value)));
}

Status take_precisions(const RequestJson& value, std::vector<std::string>& to) {
  to.clear();
  const auto is_fit = [&](const RequestJson& each) {
    if (!each.is_string()) return false;
    const auto& precision = each.get_ref<const std::string&>();
    if (std::ranges::find(kPrecisions, precision) == kPrecisions.end()) return false;
    if (std::ranges::find(to, precision) != to.end()) return false;
    to.push_back(precision);
    return true;
  };
  if (value.is_array() && !value.empty() && std::ranges::all_of(value, is_fit)) return Status();
  return Status::invalid_argument(
      fmt::format("'precisions' must be a list of \"float32\", \"bfloat16\" and \"int8\", each once at most, not {}",
                  shown_json(value)));
}

Status take_batch_sizes(const RequestJson& value, std::vector<uint32_t>& to) {
  to.clear();
  const auto is_fit = [&](const RequestJson& each) {
    if (!each.is_number_unsigned()) return false;
    const auto size = each.get<uint64_t>();
    if (size <= (to.empty() ? 0 : to.back()) || size > kBatchSizeMax) return false;
    to.push_back(static_cast<uint32_t>(size));
    return true;
  };
  if (value.is_array() && !value.empty() && value.size() <= kBatchSizesMax && std::ranges::all_of(value, is_fit)) {
    return Status();
  }
  return Status::invalid_argument(
      fmt::format("'batch_sizes' must be a list of 1 to {} whole numbers from 1 to {}, ascending, not {}",
                  kBatchSizesMax, kBatchSizeMax, shown_json(value)));
}

Status take_duration(const RequestJson& value, std::string& to) {
  FOLIOT_RETURN_IF_ERROR(take_text(value, "default_slo", to));
  const Result<Duration> duration = parse_duration(to);
  if (duration.ok() && *duration > Duration()) return Status();
  return Status::invalid_argument(
      fmt::format("'default_slo' must be a duration above 0, such as \"100ms\", not {}", shown_json(value)));
}

Status take_shares(const std::string& name, const RequestJson& value, RegistrationRequest& request) {
  if (name == "accuracy") {
    return take_number(
        value, "'accuracy' must be a number from 0 to 1", [](double x) { return x >= 0 && x <= 1; }, request.accuracy);
  }
  std::optional<double> calibration;
  FOLIOT_RETURN_IF_ERROR(take_number(
      value, "'calibration' must be a number between 0 and 1", [](double x) { return x > 0 && x < 1; }, calibration));
  request.calibration = *calibration;
  return Status();
}

Status take_registration_member(const std::string& name, const RequestJson& value, RegistrationRequest& request) {
  if (name == "task") return take_name(value, name, request.task);
  if (name == "name") return take_name(value, name, request.name);
  if (name == "file") return take_text(value, name, request.file);
  if (name == "validation") return take_text(value, name, request.validation);
  if (name == "precisions") return take_precisions(value, request.precisions);
  if (name == "batch_sizes") return take_batch_sizes(value, request.batch_sizes);
  if (name == "labels") return take_text(value, name, request.labels);
  if (name == "output") return take_text(value, name, request.output);
  if (name == "accuracy" || name == "calibration") return take_shares(name, value, request);
  if (name == "default_slo") return take_duration(value, request.default_slo);
  return Status::invalid_argument(
      fmt::format("'{}' is unknown; a registration has 'task', 'name', 'file', 'validation', 'precisions', "
                  "'batch_sizes', 'labels', 'output', 'calibration', 'accuracy', 'default_slo', 'webhook'",
                  name));
}

}  // namespace

std::vector<std::string> RegistrationRequest::models() const {
  std::vector<std::string> models;
  for (const std::string& precision : precisions) models.push_back(model_of(precision));
  return models;
}

Result<RegistrationRequest> RegistrationRequest::parse(std::string_view text) {
  FOLIOT_ASSIGN_OR_RETURN(const RequestJson json, parse_bounded_json(text));
  if (!json.is_object()) return Status::invalid_argument("a registration must be a JSON object");
  RegistrationRequest request;
  for (const auto& member : json.items()) {
    FOLIOT_RETURN_IF_ERROR(take_registration_member(member.key(), member.value(), request));
  }
  for (const auto& [name, value] :
       {std::pair("task", &request.task), {"file", &request.file}, {"validation", &request.validation}}) {
    if (value->empty()) return Status::invalid_argument(fmt::format("'{}' is missing", name));
  }
  if (!request.file.ends_with(".onnx")) {
    return Status::invalid_argument(fmt::format("'file' must be a path that ends in .onnx, not '{}'", request.file));
  }
  if (!request.validation.ends_with(".npz")) {
    return Status::invalid_argument(
        fmt::format("'validation' must be a path that ends in .npz, not '{}'", request.validation));
  }
  if (request.name.empty()) request.name = request.task;
  for (const std::string& model : request.models()) {
    if (model == request.task) {
      return Status::invalid_argument(fmt::format("'{}' would name both the task and a variant of it", model));
    }
  }
  return request;
}

}  // namespace foliot
