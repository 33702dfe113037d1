// InferenceService: the layer between the protocols and the controller. Finds the
// model, passes a call's rows to the controller, and returns the call to its I/O thread
// when the last row is completed.
//
// Threading: find(), start(), settle() and cancel() by I/O threads; complete() by the
// controller's loop; drain() and the rest by any.
#ifndef FOLIOT_FRONTEND_INFERENCE_SERVICE_H_
#define FOLIOT_FRONTEND_INFERENCE_SERVICE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "core/call_label.h"
#include "core/catalog.h"
#include "core/ports.h"
#include "frontend/answer_path.h"
#include "frontend/call_error.h"
#include "frontend/inference_call.h"
#include "frontend/mailbox.h"
#include "frontend/metrics.h"
#include "frontend/payload_table.h"
#include "frontend/pending_call.h"
#include "frontend/statistics.h"
#include "frontend/tensor_limits.h"
#include "frontend/unknown_names.h"

namespace foliot {

class InferenceService : public CompletionSink {
 public:
  struct Options {
    uint32_t rows_max = 0;   // in flight at once
    uint64_t bytes_max = 0;  // of the bodies that they came in
    TensorLimits tensors;
    bool strict_readiness = false;
    // Takes a line for the log, once for each unknown name; must not block.
    std::function<void(const std::string&)> on_unknown_name = [](const std::string&) {};
  };
  // All references outlive the service.
  InferenceService(const Options& options, const Catalog& catalog, LabelledRequestSink& requests,
                   Statistics& statistics, Metrics& metrics, std::function<TimePoint()> now);

  // A model that is ready. Errors: kNotFound, kUnavailable (not ready).
  Result<std::shared_ptr<const ModelInfo>> find(std::string_view name, std::string_view version) const;

  using Started = std::variant<std::unique_ptr<PendingCall>, CallError>;
  // Checks and submits, if `tenant` may; null: without limits. The query's bytes stay
  // where they are until the call is done; owner.on_call_done() then runs on the
  // mailbox's thread.
  Started start(std::string_view model, std::string_view version, const InferenceQuery& query,
                const std::shared_ptr<Tenant>& tenant, Mailbox& mailbox, CallOwner& owner);
  // When a call is done and its answer is about to leave; see PendingCall.
  void settle(PendingCall& pending);
  // The client went away. The owner is still called when the call is done.
  void cancel(const PendingCall& pending);

  void complete(const Completion& completion) override;

  // Logs and counts names that are ignored; start() does so for its query's.
  void note(const UnknownNamesOfRequest& unknown) { unknown_names_.note(unknown); }

  // Everything from now on is refused.
  void drain() { draining_.store(true, std::memory_order_relaxed); }
  // Whether requests should be sent here: Catalog::can_serve().
  bool ready() const { return !draining_.load(std::memory_order_relaxed) && catalog_.can_serve(strict_readiness_); }
  uint32_t rows_in_flight() const { return table_.in_use(); }
  // As Frontend's.
  bool wait_until_answered(Duration timeout) { return table_.wait_until_unused(timeout); }
  TimePoint now() const { return now_(); }
  const Catalog& catalog() const { return catalog_; }
  Statistics& statistics() const { return statistics_; }
  PayloadTable& payloads() { return table_; }

 private:
  CallError refuse(const InferenceCall& call, Refusal refusal, std::string_view detail);
  void submit(const PendingCall& pending);

  const Catalog& catalog_;
  LabelledRequestSink& requests_;
  Statistics& statistics_;
  Metrics& metrics_;
  const std::function<TimePoint()> now_;
  const TensorLimits tensors_;
  const bool strict_readiness_;
  UnknownNames unknown_names_;
  PayloadTable table_;
  AnswerPath answer_path_;
  std::atomic<bool> draining_{false};
};

}  // namespace foliot

#endif  // FOLIOT_FRONTEND_INFERENCE_SERVICE_H_
