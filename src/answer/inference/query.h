// Query: one call of a served name, as a protocol decoded it: not yet compared with what
// is served. A layer of Inference may change a copy and pass that on.
//
// The views belong to the caller: names are read during start() only, the inputs' bytes
// stay where they are until the call has its answer, and for as long as `owner` is held. A
// call may be answered at its deadline while a device still reads them.
#ifndef FOLIOT_ANSWER_INFERENCE_QUERY_H_
#define FOLIOT_ANSWER_INFERENCE_QUERY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "answer/inference/applied_deadline.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/model_info.h"
#include "foundation/core/request.h"
#include "foundation/core/tensor.h"

namespace foliot {

// The bytes of one input, as the client sent them: little-endian, row-major.
struct TensorView {
  std::string_view name;
  std::string_view datatype;
  Shape shape;
  std::span<const std::byte> bytes;
};

struct Query {
  std::string_view name{};         // a served name: an entry of the catalog
  std::string_view version{};      // a number or a label (VersionTable); empty: by the model's split, or the highest
  std::string_view split_key{};    // by which a split gives the same version again; empty: none
  std::string_view id{};           // the client's own; empty: none
  std::string_view traceparent{};  // as W3C Trace Context has it; empty: it brings none
  std::string_view selection{};    // by which an application asks this, for logs (CallLabel); empty: none does
  std::string_view context{};      // of what learns for each apart, such as a user; empty: none
  TimePoint arrival{};
  // The client's; what it calls may have a tighter one. It counts in kDeadline only.
  TimePoint deadline = TimePoint::infinite_future();
  DeadlineOrigin deadline_origin = DeadlineOrigin::kUnknown;
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
  std::shared_ptr<const void> owner{};      // keeps the inputs' bytes; null: they are the caller's alone
};

// That the query asks for nothing that only tasks know. Errors: kInvalidArgument naming what is asked of
// `name`.
Status check_no_requirements(const Query& query, std::string_view name);

// The query's deadline or the model's default, whichever comes first; infinite if there is
// neither, and in classes without one.
TimePoint deadline_of(const Query& query, const ModelInfo& model);
// The same, and which of them it is.
AppliedDeadline applied_deadline(const Query& query, const ModelInfo& model);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_QUERY_H_
