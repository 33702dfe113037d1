// InferenceService: the Inference that models answer. Finds the model, passes a call's
// rows to the controller, and sends the answer to its caller when the last row is
// completed, or a refusal (kExpired) when the call's deadline has come before.
//
// It is also where requests come from: it keeps their inputs and outputs, takes their
// completions, and counts what it observes.
//
// Threading: start() and cancel() by I/O threads; expire() by any one thread; complete() and the Observer's calls by
// the controller's loop; input() and output() by executors; the rest by any.
#ifndef FOLIOT_ANSWER_MODEL_CALLS_INFERENCE_SERVICE_H_
#define FOLIOT_ANSWER_MODEL_CALLS_INFERENCE_SERVICE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "answer/inference/call_alarms.h"
#include "answer/inference/inference.h"
#include "answer/inference/served_names.h"
#include "answer/inference/statistics.h"
#include "answer/inference/tensor_limits.h"
#include "answer/model_calls/answer_path.h"
#include "answer/model_calls/inference_call.h"
#include "answer/model_calls/metrics.h"
#include "answer/model_calls/payload_table.h"
#include "answer/model_calls/pending_call.h"
#include "foundation/core/call_label.h"
#include "foundation/core/request_origin.h"

namespace foliot {

class InferenceService : public Inference, public RequestOrigin {
 public:
  struct Options {
    uint32_t rows_max = 0;   // in flight at once; half of them of one call
    uint64_t bytes_max = 0;  // of the bodies that they came in
    TensorLimits tensors;
  };
  // All references outlive the service; and it outlives the answers that it gave.
  InferenceService(const Options& options, const ServedNames& names, LabelledRequestSink& requests,
                   CallStatistics& statistics, Metrics& metrics, std::function<TimePoint()> now);

  // Before any call: calls are traced. It outlives the service and its answers.
  void use(Tracer& tracer) { shared_.tracer = &tracer; }
  // Likewise: `set_timer` is called, by any thread, with the instant at which expire() has to be called, instead of
  // what it was called with before. It must not call back.
  void use_timer(std::function<void(TimePoint)> set_timer) { alarms_.use_timer(std::move(set_timer)); }
  // Ends calls whose deadlines have passed, through their mailboxes. Returns what it sets the timer to. No mailbox of a
  // call under way may end meanwhile.
  TimePoint expire(TimePoint now) { return alarms_.run(now); }

  Started start(const Query& query, const Caller& caller) override;
  void cancel(CallId call) override;
  // kUnimplemented: models do not learn.
  Status observe(const Observation& observation) override;

  void complete(const Completion& completion) override;
  std::span<const std::byte> input(PayloadHandle payload, uint32_t index) override {
    return table_.input(payload, index);
  }
  std::span<std::byte> output(PayloadHandle payload, uint32_t index) override { return table_.output(payload, index); }
  VisitReading finish(PayloadHandle payload) override { return table_.finish(payload); }
  void finish_empty(PayloadHandle run, uint32_t stage) override { table_.finish_empty(run, stage); }
  void fail(PayloadHandle payload, std::string_view reason) override { table_.fail(payload, reason); }
  void on_model(const ModelInfo& model) override { metrics_.on_model(model); }
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override {
    metrics_.on_outcome(action, outcome, now);
  }

  uint32_t rows_in_flight() const { return table_.in_use(); }
  // After drain(): waits until no rows are in flight, for at most so long; false if some
  // are.
  bool wait_until_answered(Duration timeout) { return table_.wait_until_unused(timeout); }

 private:
  CallError refuse(const InferenceCall& call, const Tracer::Begun& span, Refusal refusal, std::string_view detail);
  void submit(const PendingCall& pending, std::string_view selection);
  static std::shared_ptr<const CallLabel> label_of(const PendingCall& pending, std::string_view selection, bool traced);
  void expire(CallId call);

  const ServedNames& names_;
  LabelledRequestSink& requests_;
  CallStatistics& statistics_;
  Metrics& metrics_;
  const std::function<TimePoint()> now_;
  const TensorLimits tensors_;
  const CallLimits limits_;
  AnswerPath answer_path_;
  CallAlarms alarms_{[this](CallId call) { expire(call); }};
  PendingCall::Shared shared_{table_, requests_, alarms_, answer_path_, metrics_, now_};
  PayloadTable table_;  // before all else, calls that are not answered end
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_MODEL_CALLS_INFERENCE_SERVICE_H_
