// PendingCall: a call that the controller has, with the owner that waits for it. Its
// rows are in flight as long as it lives: keep it until its owner was called and its
// answer is out.
#ifndef FOLIOT_FRONTEND_PENDING_CALL_H_
#define FOLIOT_FRONTEND_PENDING_CALL_H_

#include <memory>
#include <span>
#include <vector>

#include "frontend/call_error.h"
#include "frontend/inference_call.h"
#include "frontend/mailbox.h"
#include "frontend/metrics.h"
#include "frontend/payload_table.h"
#include "frontend/statistics.h"
#include "frontend/tenant.h"

namespace foliot {

class PendingCall {
 public:
  // All references outlive this.
  PendingCall(std::unique_ptr<InferenceCall> call, PayloadTable& table, Mailbox& mailbox, CallOwner& owner,
              std::shared_ptr<ModelCounters> counters, Metrics& metrics, TenantLease lease);
  ~PendingCall();
  PendingCall(const PendingCall&) = delete;
  PendingCall& operator=(const PendingCall&) = delete;

  InferenceCall& call() { return *call_; }
  const InferenceCall& call() const { return *call_; }
  const Tenant* tenant() const { return lease_.tenant(); }
  // One for each row; empty if the table had no room for them.
  std::span<const PayloadHandle> handles() const { return handles_; }
  // Rows of other calls that are to be refused for it (kOverload).
  std::span<const PayloadHandle> evicted() const { return evicted_; }

  // One row's answer, from the controller's loop. The last one sends the call's owner
  // to the mailbox.
  void complete(const Completion& completion);
  // The final verdict, on the owner's thread, when the answer is about to leave: rows
  // that are late by now are refused, and the call is counted. REQUIRES: it is done;
  // once.
  void settle(TimePoint now);

 private:
  std::unique_ptr<InferenceCall> call_;
  PayloadTable& table_;
  Mailbox& mailbox_;
  CallOwner& owner_;
  const std::shared_ptr<ModelCounters> counters_;
  Metrics& metrics_;
  const TenantLease lease_;
  std::vector<PayloadHandle> handles_;
  std::vector<PayloadHandle> evicted_;
};

// The answer to a call that was refused. REQUIRES: it is done, and not served.
CallError refusal_of(const InferenceCall& call);

}  // namespace foliot

#endif  // FOLIOT_FRONTEND_PENDING_CALL_H_
