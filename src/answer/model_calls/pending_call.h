// PendingCall: a call that the controller has, and then its answer. Its rows are in
// flight as long as it lives: first in the payload table, then, from its delivery on,
// with the sink that takes the answer.
//
// Shortly after its deadline, if it has one, it is answered with a refusal (kExpired), whatever its
// rows wait for: a device, a process, a controller. It then stays in the table until the last of them
// is completed, and that is discarded.
//
// Threading: complete() by the controller's loop; all else by the thread of its caller.
#ifndef FOLIOT_ANSWER_MODEL_CALLS_PENDING_CALL_H_
#define FOLIOT_ANSWER_MODEL_CALLS_PENDING_CALL_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "answer/inference/call_alarms.h"
#include "answer/inference/inference.h"
#include "answer/inference/statistics.h"
#include "answer/model_calls/answer_path.h"
#include "answer/model_calls/inference_call.h"
#include "answer/model_calls/metrics.h"
#include "answer/model_calls/payload_table.h"
#include "foundation/core/ports.h"
#include "foundation/core/version_table.h"
#include "observe/tracing/tracer.h"

namespace foliot {

// Gives the tracer the span of a call that ends so, if it is traced.
void end_call_span(Tracer* tracer, const Tracer::Begun& span, const InferenceCall& call, Refusal refusal,
                   RequestId number, TimePoint now);

class PendingCall final : public Answer, public Delivery {
 public:
  // What all calls share; outlives them.
  struct Shared {
    PayloadTable& table;
    RequestSink& requests;
    CallAlarms& alarms;
    AnswerPath& answer_path;
    Metrics& metrics;
    const std::function<TimePoint()>& now;
    Tracer* tracer = nullptr;  // null: no call is traced
  };

  // The caller's references and `shared` outlive this. `span`: of the call, if it is traced.
  PendingCall(std::unique_ptr<InferenceCall> call, const Caller& caller, std::shared_ptr<ModelCounters> counters,
              TenantLease lease, const Tracer::Begun& span, const Shared& shared);
  ~PendingCall() override;
  PendingCall(const PendingCall&) = delete;
  PendingCall& operator=(const PendingCall&) = delete;

  InferenceCall& call() { return *call_; }
  const InferenceCall& call() const { return *call_; }
  const Tenant* tenant() const { return lease_.tenant(); }
  const TraceContext& trace() const { return span_.context; }
  // One for each row; empty if the table had no room for them.
  std::span<const PayloadHandle> handles() const { return handles_; }
  // Rows of other calls that are to be refused for it (kOverload).
  std::span<const PayloadHandle> evicted() const { return evicted_; }
  // REQUIRES: it has handles.
  CallId call_id() const { return CallId(handles_.front().value()); }

  // The time at which expire() is to be called; infinite: it has no deadline.
  TimePoint due() const;

  // One row's answer, from the controller's loop. The last one sends the call to its
  // caller's mailbox; the first refusal has the other rows cancelled.
  void complete(const Completion& completion);
  // All rows that wait. Once: later calls do nothing.
  void cancel();
  void deliver() override;
  // It is due: answers the call unless it has its answer.
  void expire();

  bool served() const override { return call_->served(); }
  CallError error() const override;
  std::string_view name() const override { return client_name(call_->model().name); }
  std::string_view version() const override { return call_->model().version; }
  std::string_view id() const override { return call_->id(); }
  Quality quality() const override { return Quality::kComplete; }
  RequestId number() const override { return call_->number(); }
  // Of a task: which variant answered.
  std::vector<AnswerParameter> parameters() const override;
  uint32_t output_count() const override { return call_->requested_count(); }
  const TensorSpec& output_spec(uint32_t i) const override { return call_->requested_spec(i); }
  Shape output_shape(uint32_t i) const override { return call_->requested_shape(i); }
  bool output_is_padded(uint32_t i) const override { return call_->requested_is_padded(i); }
  std::string take_output(uint32_t i) override { return call_->take_requested(i); }
  // Rows that are late by now are refused, and the call is counted.
  void settle() override;

 private:
  // On its way to the caller's thread, before the answer.
  class FirstRefusal final : public Delivery {
   public:
    explicit FirstRefusal(PendingCall& call) : call_(call) {}
    void deliver() override { call_.cancel(); }

   private:
    PendingCall& call_;
  };

  std::unique_ptr<InferenceCall> call_;
  Mailbox& mailbox_;
  AnswerSink& sink_;
  const std::shared_ptr<ModelCounters> counters_;
  const TenantLease lease_;
  const Tracer::Begun span_;
  const Shared& shared_;
  std::vector<PayloadHandle> handles_;
  std::vector<PayloadHandle> evicted_;
  FirstRefusal first_refusal_{*this};
  bool cancelled_ = false;
  bool answered_ = false;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_MODEL_CALLS_PENDING_CALL_H_
