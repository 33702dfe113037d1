// Request parameters: the parameters of a request beside its tensors, the same over
// both protocols. Each is honoured, refused, or unknown; unknown ones are ignored, and
// are returned by name so that they can be logged and counted
// (edge/requests/unknown_names.h).
//
//   timeout                      honoured: the deadline, in microseconds; 0 is none
//   class                        honoured: "deadline" (the default), "best_effort" or "offline"
//   context                      honoured: a text of at most 64 bytes, for which an application learns apart
//   label                        honoured: in place of a version, a label of the model's; a text of at most 64 bytes
//   split_key                    honoured: a text of at most 256 bytes, for which a split chooses one version always
//   accuracy                     honoured: of a task, at least; a number in [0, 1], or its text
//   cost                         honoured: of a task, at most, of one row, in dollars; likewise, above 0
//   priority                     0, the default, honoured; refused else: order is by deadline
//   sequence_id, _start, _end    0, "" and false honoured, since they say "no sequence"; refused else
//   content_type                 of requests, as of MLServer's clients: read, and needs nothing; of inputs and outputs
//                                by edge/requests/content_type.h
//   shared_memory_*              refused, of inputs and outputs
//   classification               of outputs: 0 honoured, refused else
//
// What only one protocol has (binary_data...) belongs to its decoder.
#ifndef FOLIOT_EDGE_REQUESTS_REQUEST_PARAMETERS_H_
#define FOLIOT_EDGE_REQUESTS_REQUEST_PARAMETERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/request.h"
#include "foundation/core/version_list.h"

namespace foliot {

// Of requests on a stream: their answers need not wait for those of earlier requests.
inline constexpr std::string_view kUnorderedParameter = "unordered";

// monostate: anything else, such as a list.
using ParameterValue = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string_view>;

// Where in a request a name stands.
enum class NamePlace : uint8_t { kParameter, kInputParameter, kOutputParameter, kBody, kInput, kOutput, kRepository };
// "request parameter", "input parameter", "output parameter", "request member", "input member",
// "output member", "repository parameter".
std::string_view to_string(NamePlace place);

struct UnknownName {
  NamePlace place;
  std::string_view name;
};
// The first of one request's; a request may have any number.
class UnknownNamesOfRequest {
 public:
  static constexpr size_t kMax = 16;
  void add(NamePlace place, std::string_view name) {
    if (names_.size() < kMax) names_.push_back({place, name});
  }
  const std::vector<UnknownName>& names() const { return names_; }

 private:
  std::vector<UnknownName> names_;
};

// What the parameters of one request ask for.
struct RequestParameters {
  std::optional<Duration> timeout;
  RequestClass request_class = RequestClass::kDeadline;
  std::string_view context;    // shows the request
  std::string_view label;      // likewise
  std::string_view split_key;  // likewise
  std::optional<double> accuracy;
  std::optional<double> cost;
  UnknownNamesOfRequest unknown;

  // Errors: kInvalidArgument for parameters that exclude each other.
  Status check() const;
  // What is asked for, where the protocol's own field has `version`. Errors: kInvalidArgument if both say something.
  Result<std::string_view> version_or_label(std::string_view version) const;

  // Infinite without a timeout.
  TimePoint deadline(TimePoint arrival) const { return timeout ? arrival + *timeout : TimePoint::infinite_future(); }
};

// The parameter `timeout`: 0 is none. Errors: kInvalidArgument if negative.
Result<std::optional<Duration>> parse_timeout(int64_t microseconds);

// Each adds a name that it does not know to `unknown`. Errors: kUnimplemented for what
// Foliot understands and does not do; kInvalidArgument for a value of the wrong type.
// All name the parameter and its value.
Status read_request_parameter(std::string_view name, const ParameterValue& value, RequestParameters& parameters);
Status read_input_parameter(std::string_view input, std::string_view name, UnknownNamesOfRequest& unknown);
Status read_output_parameter(std::string_view output, std::string_view name, const ParameterValue& value,
                             UnknownNamesOfRequest& unknown);
// Of a tensor in shared memory, or of a region to be registered.
Status shared_memory_not_supported();
// Of a load or an unload of the repository API. `request`: of a load; null: of an unload.
Status read_repository_parameter(std::string_view name, const ParameterValue& value, VersionRequest* request,
                                 UnknownNamesOfRequest& unknown);

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_REQUEST_PARAMETERS_H_
