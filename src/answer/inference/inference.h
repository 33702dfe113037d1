// Inference: the interface between the protocols and what answers: a model, or a layer
// (a cache, a selection of models, per-user weights) that uses another Inference.
//
// Every start() has exactly one answer: the error that it returns, or one call of
// AnswerSink::on_answer(). An implementation never calls back into its caller within
// start(), cancel() or observe(); answers come through the caller's mailbox, on the
// mailbox's thread.
//
// Errors are those of CallError, whole: a layer passes on one from below unchanged,
// unless it has an answer in its place (Quality).
//   404  kNotFound: the name or its version is unknown
//   503  kUnavailable: the name is known and not ready
//   400  kInvalidArgument: the inputs or outputs are not those of what is called, by name
//   refusals: as Refusal says; a deadline that has passed is one of kUnmeetable,
//        kExpired, kLate
//
// Every implementation passes the suite in answer/inference/conformance.
//
// Threading: start() and cancel() by I/O threads, several at a time, for one call always
// by the thread of the caller's mailbox; observe() by any. None of them blocks.
#ifndef FOLIOT_ANSWER_INFERENCE_INFERENCE_H_
#define FOLIOT_ANSWER_INFERENCE_INFERENCE_H_

#include <cstdint>
#include <memory>
#include <string_view>
#include <variant>
#include <vector>

#include "answer/inference/answer.h"
#include "answer/inference/call_error.h"
#include "answer/inference/mailbox.h"
#include "answer/inference/query.h"
#include "answer/inference/tenant.h"
#include "foundation/base/id.h"
#include "foundation/base/status.h"

namespace foliot {

// A call under way. Of one Inference, no two calls ever have the same.
using CallId = Id<struct CallTag, uint64_t>;

class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  // On the thread of the caller's mailbox, once. May destroy the sink.
  virtual void on_answer(CallId call, std::unique_ptr<Answer> answer) = 0;
};

// The part that makes a call, and whose limits count for it.
struct Caller {
  std::shared_ptr<Tenant> tenant;  // null: without limits
  // Both outlive the call.
  Mailbox& mailbox;
  AnswerSink& sink;
};

// What the outputs should have been, as a client knows later; or of an earlier call, known by
// its answer's parameter `feedback_id`, what it lost.
struct Observation {
  struct Loss {
    std::string_view model;  // empty: the one that was asked
    double loss = 0;         // 0: it was right, 1: as wrong as can be
  };

  std::string_view name;
  std::string_view version;  // empty: the one that is served
  std::vector<TensorView> inputs;
  std::vector<TensorView> outputs;   // an unnamed one: that which is compared
  std::string_view feedback_id{};    // empty: of no earlier call
  std::vector<Loss> losses{};        // instead of outputs
  std::shared_ptr<Tenant> tenant{};  // the one that had the answer
};

class Inference {
 public:
  virtual ~Inference() = default;

  using Started = std::variant<CallId, CallError>;
  virtual Started start(const Query& query, const Caller& caller) = 0;
  // The client went away: the call may end early, as kCancelled. It still has its answer.
  // An id that is unknown, answered or cancelled already is ignored.
  virtual void cancel(CallId call) = 0;
  // Errors: kNotFound and kUnavailable as for start(), kUnimplemented where nothing is
  // learned from it. Of an earlier call: kNotFound if its id is unknown, another tenant's or
  // too old, kAlreadyExists if it was observed, kInvalidArgument for what does not fit it.
  virtual Status observe(const Observation& observation) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_INFERENCE_H_
