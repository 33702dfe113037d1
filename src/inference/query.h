// Query: one call of a served name, as a protocol decoded it: not yet compared with what
// is served. A layer of Inference may change a copy and pass that on.
//
// The views belong to the caller: names are read during start() only, the inputs' bytes
// stay where they are until the call has its answer.
#ifndef FOLIOT_INFERENCE_QUERY_H_
#define FOLIOT_INFERENCE_QUERY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "core/model_info.h"
#include "core/request.h"
#include "core/tensor.h"

namespace foliot {

// The bytes of one input, as the client sent them: little-endian, row-major.
struct TensorView {
  std::string_view name;
  std::string_view datatype;
  Shape shape;
  std::span<const std::byte> bytes;
};

struct Query {
  std::string_view name{};       // a served name: an entry of the catalog
  std::string_view version{};    // empty: the one that is served
  std::string_view id{};         // the client's own; empty: none
  std::string_view selection{};  // by which an application asks this, for logs (CallLabel); empty: none does
  std::string_view context{};    // of what learns for each apart, such as a user; empty: none
  TimePoint arrival{};
  // The client's; what it calls may have a tighter one. It counts in kDeadline only.
  TimePoint deadline = TimePoint::infinite_future();
  // kDeadline without a deadline is best effort.
  RequestClass request_class = RequestClass::kDeadline;
  // The caller answers in time without it, too: what is likely to be in time is tried (Request::optional).
  bool optional = false;
  // Of a task; an error of anything else.
  std::optional<double> accuracy{};  // at least; in [0, 1]
  std::optional<double> cost{};      // at most, of one row, in dollars; above 0
  std::vector<TensorView> inputs{};
  std::vector<std::string_view> outputs{};  // empty: all
  uint64_t body_bytes = 0;                  // of the message that it came in
};

// That the query asks for nothing that only tasks know. Errors: kInvalidArgument naming what is asked of
// `name`.
Status check_no_requirements(const Query& query, std::string_view name);

// The query's deadline or the model's default, whichever comes first; infinite if there is
// neither, and in classes without one.
TimePoint deadline_of(const Query& query, const ModelInfo& model);

}  // namespace foliot

#endif  // FOLIOT_INFERENCE_QUERY_H_
