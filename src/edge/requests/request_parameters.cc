#include "edge/requests/request_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "edge/requests/content_type.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

// Of a value that an error quotes.
constexpr size_t kShownBytesMax = 64;
constexpr size_t kContextBytesMax = 64;
constexpr size_t kVersionLabelBytesMax = 64;
constexpr size_t kSplitKeyBytesMax = 256;
// Longer timeouts cannot be distinguished from this one.
constexpr int64_t kTimeoutMaxMicroseconds = int64_t{365} * 24 * 3600 * 1'000'000;

std::string shown(const ParameterValue& value) {
  struct Show {
    std::string operator()(std::monostate) const { return "neither a number nor a text"; }
    std::string operator()(bool truth) const { return truth ? "true" : "false"; }
    std::string operator()(int64_t number) const { return std::to_string(number); }
    std::string operator()(uint64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(std::string_view text) const {
      return fmt::format("'{}'{}", text.substr(0, kShownBytesMax), text.size() > kShownBytesMax ? "..." : "");
    }
  };
  return std::visit(Show(), value);
}

Status wrong_type(std::string_view name, const ParameterValue& value, std::string_view wanted) {
  return Status::invalid_argument(fmt::format("parameter '{}' must be {}, got {}", name, wanted, shown(value)));
}

// Whole numbers that no int64_t holds count as the largest that it does.
std::optional<int64_t> whole_number(const ParameterValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  const auto* number = std::get_if<uint64_t>(&value);
  if (number == nullptr) return std::nullopt;
  return static_cast<int64_t>(std::min<uint64_t>(*number, std::numeric_limits<int64_t>::max()));
}

// Some clients can send whole numbers and texts alone, so a text counts as the number that it shows.
std::optional<double> number(const ParameterValue& value) {
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* whole = std::get_if<uint64_t>(&value)) return static_cast<double>(*whole);
  const auto* text = std::get_if<std::string_view>(&value);
  if (text == nullptr) return std::nullopt;
  double parsed = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), parsed);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return parsed;
}

Status read_accuracy(std::string_view name, const ParameterValue& value, RequestParameters& parameters) {
  const std::optional<double> accuracy = number(value);
  if (!accuracy || !(*accuracy >= 0 && *accuracy <= 1)) return wrong_type(name, value, "a number from 0 to 1");
  parameters.accuracy = accuracy;
  return Status();
}

Status read_cost(std::string_view name, const ParameterValue& value, RequestParameters& parameters) {
  const std::optional<double> cost = number(value);
  if (!cost || !(*cost > 0) || !std::isfinite(*cost)) {
    return wrong_type(name, value, "a number of dollars above 0, for one row");
  }
  parameters.cost = cost;
  return Status();
}

Status read_timeout(std::string_view name, const ParameterValue& value, RequestParameters& parameters) {
  const std::optional<int64_t> microseconds = whole_number(value);
  if (!microseconds) return wrong_type(name, value, "a whole number of microseconds");
  FOLIOT_ASSIGN_OR_RETURN(parameters.timeout, parse_timeout(*microseconds));
  return Status();
}

Status read_class(std::string_view name, const ParameterValue& value, RequestParameters& parameters) {
  const auto* text = std::get_if<std::string_view>(&value);
  for (const RequestClass known : {RequestClass::kDeadline, RequestClass::kBestEffort, RequestClass::kOffline}) {
    if (text == nullptr || *text != to_string(known)) continue;
    parameters.request_class = known;
    return Status();
  }
  return wrong_type(name, value, "'deadline' (the default), 'best_effort' or 'offline'");
}

Status read_text(std::string_view name, const ParameterValue& value, size_t bytes_max, std::string_view& to) {
  const auto* text = std::get_if<std::string_view>(&value);
  if (text == nullptr || text->size() > bytes_max) {
    return wrong_type(name, value, fmt::format("a text of at most {} bytes", bytes_max));
  }
  to = *text;
  return Status();
}

Status check_priority(std::string_view name, const ParameterValue& value) {
  const std::optional<int64_t> priority = whole_number(value);
  if (!priority || *priority < 0) return wrong_type(name, value, "a whole number, 0 for the default");
  if (*priority == 0) return Status();
  return Status::unimplemented(
      fmt::format("parameter 'priority' is {}: requests are ordered by their deadlines and not by priorities; send 0, "
                  "or none, and a 'timeout' in microseconds",
                  shown(value)));
}

Status no_sequences(std::string_view name, const ParameterValue& value) {
  return Status::unimplemented(
      fmt::format("parameter '{}' is {}: sequences are not supported, no state is kept from one request to the next; "
                  "keep it in the client and send it as an input",
                  name, shown(value)));
}

Status check_sequence_id(std::string_view name, const ParameterValue& value) {
  const auto* text = std::get_if<std::string_view>(&value);
  const std::optional<int64_t> number = whole_number(value);
  if (text == nullptr && !number) return wrong_type(name, value, "a whole number or a text");
  const bool none = text != nullptr ? text->empty() : *number == 0;
  return none ? Status() : no_sequences(name, value);
}

Status check_sequence_mark(std::string_view name, const ParameterValue& value) {
  const auto* marked = std::get_if<bool>(&value);
  if (marked == nullptr) return wrong_type(name, value, "true or false");
  return *marked ? no_sequences(name, value) : Status();
}

Status no_shared_memory(std::string_view tensor) {
  return shared_memory_not_supported().with_context(fmt::format("tensor '{}'", tensor));
}

}  // namespace

std::string_view to_string(NamePlace place) {
  switch (place) {
    case NamePlace::kParameter: return "request parameter";
    case NamePlace::kInputParameter: return "input parameter";
    case NamePlace::kOutputParameter: return "output parameter";
    case NamePlace::kBody: return "request member";
    case NamePlace::kInput: return "input member";
    case NamePlace::kOutput: return "output member";
    case NamePlace::kRepository: return "repository parameter";
  }
  FOLIOT_CHECK(false);
}

Result<std::optional<Duration>> parse_timeout(int64_t microseconds) {
  if (microseconds < 0)
    return Status::invalid_argument(
        fmt::format("parameter 'timeout' is {}; it must be a number of microseconds, 0 for none", microseconds));
  if (microseconds == 0) return std::optional<Duration>();
  return std::optional<Duration>(Duration::microseconds(std::min(microseconds, kTimeoutMaxMicroseconds)));
}

Status RequestParameters::check() const {
  if (!timeout || request_class == RequestClass::kDeadline) return Status();
  return Status::invalid_argument(
      fmt::format("parameter 'class' is '{}', which has no deadline, and 'timeout' is {} us; leave one of them out",
                  to_string(request_class), timeout->nanoseconds() / 1000));
}

Result<std::string_view> RequestParameters::version_or_label(std::string_view version) const {
  if (label.empty() || version.empty()) return label.empty() ? version : label;
  return Status::invalid_argument(
      fmt::format("the request names version '{}', and its parameter 'label' is '{}'; leave one of them out",
                  version.substr(0, kShownBytesMax), label));
}

Status read_request_parameter(std::string_view name, const ParameterValue& value, RequestParameters& parameters) {
  if (name == "timeout") return read_timeout(name, value, parameters);
  if (name == "class") return read_class(name, value, parameters);
  if (name == "context") return read_text(name, value, kContextBytesMax, parameters.context);
  if (name == "label") return read_text(name, value, kVersionLabelBytesMax, parameters.label);
  if (name == "split_key") return read_text(name, value, kSplitKeyBytesMax, parameters.split_key);
  if (name == "accuracy") return read_accuracy(name, value, parameters);
  if (name == "cost") return read_cost(name, value, parameters);
  if (name == "priority") return check_priority(name, value);
  if (name == "sequence_id") return check_sequence_id(name, value);
  // Each input says by itself what it is, and a table is one by its inputs.
  if (name == kContentTypeParameter) return Status();
  if (name == "sequence_start" || name == "sequence_end") return check_sequence_mark(name, value);
  parameters.unknown.add(NamePlace::kParameter, name);
  return Status();
}

Status read_input_parameter(std::string_view input, std::string_view name, UnknownNamesOfRequest& unknown) {
  if (name.starts_with("shared_memory_")) return no_shared_memory(input);
  unknown.add(NamePlace::kInputParameter, name);
  return Status();
}

Status read_output_parameter(std::string_view output, std::string_view name, const ParameterValue& value,
                             UnknownNamesOfRequest& unknown) {
  if (name.starts_with("shared_memory_")) return no_shared_memory(output);
  if (name != "classification") {
    unknown.add(NamePlace::kOutputParameter, name);
    return Status();
  }
  const std::optional<int64_t> classes = whole_number(value);
  if (!classes) return wrong_type(name, value, "a number of classes").with_context(fmt::format("output '{}'", output));
  if (*classes == 0) return Status();
  return Status::unimplemented(fmt::format("output '{}': classification is not supported; ask for the tensor", output));
}

Status shared_memory_not_supported() {
  return Status::unimplemented("shared memory is not supported; send the data with the request");
}

namespace {

// nullopt: it is none of a load's. Errors: kInvalidArgument for a value of the wrong type.
std::optional<Status> read_version_parameter(std::string_view name, const ParameterValue& value,
                                             VersionRequest& request) {
  if (name == "version") {
    const auto* const text = std::get_if<std::string_view>(&value);
    const auto* const number = std::get_if<int64_t>(&value);
    const auto* const large = std::get_if<uint64_t>(&value);
    if (text != nullptr && !text->empty()) {
      request.version = std::string(text->substr(0, kShownBytesMax));
    } else if ((number != nullptr && *number >= 0) || large != nullptr) {
      request.version = number != nullptr ? std::to_string(*number) : std::to_string(*large);
    } else {
      return Status::invalid_argument(
          "parameter 'version' must be the number of a version, or its text, such as \"2\"");
    }
    return Status();
  }
  bool* const flag = name == "compare"     ? &request.compare
                     : name == "take"      ? &request.take
                     : name == "roll_back" ? &request.roll_back
                                           : nullptr;
  if (flag == nullptr) return std::nullopt;
  const auto* const given = std::get_if<bool>(&value);
  if (given == nullptr) {
    return Status::invalid_argument(fmt::format("parameter '{}' must be true or false", name));
  }
  *flag = *given;
  return Status();
}

}  // namespace

Status read_repository_parameter(std::string_view name, const ParameterValue& value, VersionRequest* request,
                                 UnknownNamesOfRequest& unknown) {
  if (name == "unload_dependents") return Status();  // no model depends on another
  if (name == "config" || name.starts_with("file:")) {
    return Status::unimplemented(
        fmt::format("parameter '{}' is not supported: a model and its configuration (model.toml) are loaded from the "
                    "repository",
                    name.substr(0, kShownBytesMax)));
  }
  if (request != nullptr) {
    if (const std::optional<Status> read = read_version_parameter(name, value, *request)) return *read;
    if (request->unknown.empty()) request->unknown = std::string(name.substr(0, kShownBytesMax));
  }
  unknown.add(NamePlace::kRepository, name);
  return Status();
}

}  // namespace foliot
