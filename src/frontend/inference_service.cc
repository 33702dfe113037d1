#include "frontend/inference_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace foliot {
namespace {

constexpr int64_t kPathPartMax = 4;

}  // namespace

InferenceService::InferenceService(const Options& options, const Catalog& catalog, LabelledRequestSink& requests,
                                   Statistics& statistics, Metrics& metrics, std::function<TimePoint()> now)
    : catalog_(catalog),
      requests_(requests),
      statistics_(statistics),
      metrics_(metrics),
      now_(std::move(now)),
      tensors_(options.tensors),
      strict_readiness_(options.strict_readiness),
      unknown_names_(options.on_unknown_name, metrics),
      table_(options.rows_max, options.bytes_max) {}

Result<std::shared_ptr<const ModelInfo>> InferenceService::find(std::string_view name, std::string_view version) const {
  const Catalog::EntryPtr found = catalog_.find(name);
  // A server that starts may not know its models yet.
  if (found == nullptr && !catalog_.ready() && catalog_.empty())
    return Status::unavailable(fmt::format("model '{}' is not known yet: the server is not ready; try again", name));
  if (found == nullptr) return Status::not_found(fmt::format("unknown model '{}'", name));
  const CatalogEntry& entry = *found;
  if (!version.empty() && version != entry.version)
    return Status::not_found(
        fmt::format("model '{}' has no version '{}'; version '{}' is served", name, version, entry.version));
  if (entry.state != ModelState::kReady || entry.info == nullptr)
    return Status::unavailable(fmt::format("model '{}' is not ready: {}{}{}", name, to_string(entry.state),
                                           entry.reason.empty() ? "" : ": ", entry.reason));
  return entry.info;
}

InferenceService::Started InferenceService::start(std::string_view model, std::string_view version,
                                                  const InferenceQuery& query, const std::shared_ptr<Tenant>& tenant,
                                                  Mailbox& mailbox, CallOwner& owner) {
  note(query.unknown);
  Result<std::shared_ptr<const ModelInfo>> info = find(model, version);
  if (!info.ok()) return call_error(info.status());
  const std::shared_ptr<ModelCounters> counters = statistics_.of(**info);
  const auto fail = [&](const Status& status) {
    counters->count_failed(now_() - query.arrival);
    return call_error(status);
  };
  if (const Status status = check(tensors_, query); !status.ok()) return fail(status);
  Result<std::unique_ptr<InferenceCall>> call = InferenceCall::make(*info, query);
  if (!call.ok()) return fail(call.status());
  if (draining_.load(std::memory_order_relaxed))
    return refuse(**call, Refusal::kDraining, "the server is shutting down");

  const uint32_t rows = (*call)->rows();
  if (tenant) {
    if (auto over_limit = tenant->enter(rows, now_())) {
      counters->count_failed(now_() - query.arrival);
      return *std::move(over_limit);
    }
  }
  auto pending = std::make_unique<PendingCall>(std::move(call).value(), table_, mailbox, owner, counters, metrics_,
                                               TenantLease(tenant, rows));
  if (pending->handles().empty()) return refuse(pending->call(), Refusal::kOverload, "too many requests in flight");
  for (const PayloadHandle payload : pending->evicted()) {
    requests_.cancel(RequestId(payload.value()), Refusal::kOverload);
  }
  submit(*pending);
  return pending;
}

CallError InferenceService::refuse(const InferenceCall& call, Refusal refusal, std::string_view detail) {
  const TimePoint now = now_();
  metrics_.count_refused(call.model(), refusal, call.rows(), !call.deadline().is_infinite());
  statistics_.of(call.model())->count_failed(now - call.arrival());
  return call_error(refusal, call.model().name, detail, call.arrival(), now, TimePoint());
}

void InferenceService::submit(const PendingCall& pending) {
  const InferenceCall& call = pending.call();
  // After its last row is submitted the call may be done, so what the rows share
  // is read before.
  // Not so much that no time is left: then the answer may be late, but others need not be.
  const Duration answer_path = call.deadline().is_infinite()
                                   ? Duration()
                                   : std::min(answer_path_.length(), (call.deadline() - call.arrival()) / kPathPartMax);
  Request request{.id = {},
                  .model = call.model().id,
                  .bucket = call.bucket(),
                  .payload = {},
                  .arrival = call.arrival(),
                  .deadline = call.deadline() - answer_path,
                  .answer_path = answer_path};
  if (const Tenant* tenant = pending.tenant()) {
    request.tenant = tenant->id();
    request.tenant_weight = tenant->weight();
  }
  std::shared_ptr<const CallLabel> label;
  if (!call.id().empty()) label = std::make_shared<const CallLabel>(call_label(call.id()));
  for (PayloadHandle payload : pending.handles()) {
    request.id = RequestId(payload.value());
    request.payload = payload;
    requests_.submit_labelled(request, label);
  }
}

void InferenceService::settle(PendingCall& pending) {
  const TimePoint now = now_();
  const InferenceCall& call = pending.call();
  answer_path_.record(now - call.completions().back().finished, call.served(), now);
  pending.settle(now);
}

void InferenceService::cancel(const PendingCall& pending) {
  for (PayloadHandle payload : pending.handles()) requests_.cancel(RequestId(payload.value()), Refusal::kCancelled);
}

void InferenceService::complete(const Completion& completion) {
  table_.find(completion.payload).call->complete(completion);
}

}  // namespace foliot
