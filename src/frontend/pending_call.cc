#include "frontend/pending_call.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/check.h"

namespace foliot {
namespace {

// The protocol's statistics contain the time of day; nothing else here does.
uint64_t milliseconds_since_1970() {
  using std::chrono::milliseconds;
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<milliseconds>(since).count());
}

}  // namespace

PendingCall::PendingCall(std::unique_ptr<InferenceCall> call, PayloadTable& table, Mailbox& mailbox, CallOwner& owner,
                         std::shared_ptr<ModelCounters> counters, Metrics& metrics, TenantLease lease)
    : call_(std::move(call)),
      table_(table),
      mailbox_(mailbox),
      owner_(owner),
      counters_(std::move(counters)),
      metrics_(metrics),
      lease_(std::move(lease)),
      handles_(call_->rows()) {
  if (!table_.acquire(*this, handles_, evicted_)) handles_.clear();
}

PendingCall::~PendingCall() {
  if (!handles_.empty()) table_.release(handles_);
}

void PendingCall::complete(const Completion& completion) {
  if (call_->complete(completion)) mailbox_.push(owner_);
}

void PendingCall::settle(TimePoint now) {
  call_->settle(now);
  const Completion& last = call_->completions().back();
  if (call_->served())
    counters_->count_served(call_->rows(), last, milliseconds_since_1970());
  else
    counters_->count_failed(last.finished - last.arrival);
  for (const Completion& row : call_->completions()) {
    metrics_.count(call_->model(), row);
    if (Tenant* tenant = lease_.tenant()) tenant->count(row.refusal);
  }
}

CallError refusal_of(const InferenceCall& call) {
  const Completion& refused = call.refusal();
  CallError error = call_error(refused.refusal, call.model().name, refused.detail, call.arrival(), refused.finished,
                               refused.earliest_completion);
  error.request = refused.id;
  // In the message, too: most clients show nothing else of an error.
  if (error.request != RequestId()) error.message += fmt::format("; request {}", error.request.value());
  return error;
}

}  // namespace foliot
