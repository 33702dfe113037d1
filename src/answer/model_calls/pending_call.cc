#include "answer/model_calls/pending_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "answer/inference/refused_answer.h"
#include "answer/model_calls/refused_inputs.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

// The controller's own refusals say more: they are waited for so long, beyond the deadline and from arrival.
constexpr Duration kGrace = Duration::milliseconds(1);
constexpr Duration kFirstWordTime = Duration::milliseconds(5);

// The protocol's statistics contain the time of day; nothing else here does.
uint64_t milliseconds_since_1970() {
  using std::chrono::milliseconds;
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<milliseconds>(since).count());
}

}  // namespace

void end_call_span(Tracer* tracer, const Tracer::Begun& span, const InferenceCall& call, Refusal refusal,
                   RequestId number, TimePoint now) {
  if (!span.context) return;
  Span ended{.context = span.context,
             .parent = span.parent,
             .part = SpanPart::kFrontend,
             .kind = SpanKind::kCall,
             .refusal = refusal,
             .begin = call.arrival(),
             .end = now,
             .request = number,
             .rows = call.rows()};
  ended.set_name(call.model().name);
  tracer->add(ended);
}

PendingCall::PendingCall(std::unique_ptr<InferenceCall> call, const Caller& caller,
                         std::shared_ptr<ModelCounters> counters, TenantLease lease, const Tracer::Begun& span,
                         const Shared& shared)
    : call_(std::move(call)),
      mailbox_(caller.mailbox),
      sink_(caller.sink),
      counters_(std::move(counters)),
      lease_(std::move(lease)),
      span_(span),
      shared_(shared),
      handles_(call_->rows()) {
  if (!shared_.table.acquire(*this, handles_, evicted_)) handles_.clear();
}

PendingCall::~PendingCall() {
  if (!handles_.empty()) shared_.table.release(handles_);
}

void PendingCall::complete(const Completion& completion) {
  const bool is_first_refusal = !completion.served() && call_->served();
  if (call_->complete(completion)) {
    mailbox_.push(*this);
  } else if (is_first_refusal) {
    mailbox_.push(first_refusal_);
  }
}

void PendingCall::cancel() {
  if (std::exchange(cancelled_, true)) return;
  for (const PayloadHandle payload : handles_) shared_.requests.cancel(RequestId(payload.value()), Refusal::kCancelled);
}

void PendingCall::deliver() {
  std::unique_ptr<PendingCall> self = shared_.table.give(*this);
  if (std::exchange(answered_, true)) {
    for (const Completion& row : call_->completions()) shared_.metrics.count_discarded(row.refusal);
    return;
  }
  shared_.alarms.remove(call_id(), due());
  call_->collect();
  sink_.on_answer(call_id(), std::move(self));
}

TimePoint PendingCall::due() const {
  if (call_->deadline().is_infinite()) return call_->deadline();
  return std::max(call_->deadline() + kGrace, call_->arrival() + kFirstWordTime);
}

// The controller's loop may be completing rows meanwhile: nothing of these is read.
void PendingCall::expire() {
  if (std::exchange(answered_, true)) return;
  const TimePoint now = shared_.now();
  counters_->count_failed(now - call_->arrival());
  shared_.metrics.count_refused(call_->model(), Refusal::kExpired, call_->rows(), now - call_->arrival(),
                                call_->time());
  if (Tenant* tenant = lease_.tenant()) {
    for (uint32_t row = 0; row < call_->rows(); ++row) tenant->count(Refusal::kExpired);
  }
  end_call_span(shared_.tracer, span_, *call_, Refusal::kExpired, RequestId(), now);
  CallError error = call_error(Refusal::kExpired, call_->model().name, "no answer has come by its deadline",
                               call_->arrival(), now, TimePoint(), call_->applied_deadline());
  sink_.on_answer(call_id(), std::make_unique<RefusedAnswer>(call_->shared_model(), call_->id(), std::move(error)));
}

void PendingCall::settle() {
  const TimePoint now = shared_.now();
  shared_.answer_path.record(now - call_->completions().back().finished, call_->served(), now);
  call_->settle(now);
  end_call_span(shared_.tracer, span_, *call_, call_->served() ? Refusal::kNone : call_->refusal().refusal,
                call_->number(), now);
  const Completion& last = call_->completions().back();
  if (call_->served())
    counters_->count_served(call_->rows(), last, milliseconds_since_1970());
  else
    counters_->count_failed(last.finished - last.arrival);
  for (const Completion& row : call_->completions()) {
    shared_.metrics.count(call_->model(), row);
    if (Tenant* tenant = lease_.tenant()) tenant->count(row.refusal);
  }
}

std::vector<AnswerParameter> PendingCall::parameters() const {
  const TaskVariant* variant = call_->variant();
  if (variant == nullptr) return {};
  return {{kVariantParameter, variant->model->name}};
}

CallError PendingCall::error() const {
  const Completion& refused = call_->refusal();
  const bool has_reason = refused.refusal == Refusal::kModelError && !call_->failure().empty();
  const std::string& detail = has_reason ? call_->failure() : refused.detail;
  CallError error = call_error(refused.refusal, call_->model().name, detail, call_->arrival(), refused.finished,
                               refused.earliest_completion, call_->applied_deadline());
  // Rows of a compiled model fail by what they bring.
  if (refused.refusal == Refusal::kModelError && detail.empty() && is_compiled(call_->model())) {
    const std::string inputs = describe_refused_inputs(*call_);
    const bool from_framework = call_->model().from_framework;
    if (!from_framework) {  // else it is the exception that its library would raise
      error.http_status = 400;
      error.grpc_code = GrpcCode::kInvalidArgument;
    }
    error.message = fmt::format(
        "model '{}' refused the request: {}: its inputs are not what the model computes with: {}{}{}",
        call_->model().name, error.reason,
        from_framework
            ? "numbers or categories that its library refuses"
            : "an index beyond a table, NaN or infinity that a convolution would lose, or what can't be decoded",
        inputs.empty() ? "" : "; ", inputs);
  }
  error.request = refused.id;
  // In the message, too: most clients show nothing else of an error.
  if (error.request != RequestId()) error.message += fmt::format("; request {}", error.request.value());
  return error;
}

}  // namespace foliot
