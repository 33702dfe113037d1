#include "answer/model_calls/inference_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace foliot {
namespace {

constexpr int64_t kPathPartMax = 4;
// Of a traced call: a hundred rows would show nothing that eight do not.
constexpr size_t kTracedRowsMax = 8;

// What no variant can satisfy at any time is refused here; what takes predictions, by the
// controller.
Status check_requirements(const ModelInfo& info, const Query& query) {
  if (info.task == nullptr) return check_no_requirements(query, info.name);
  const TaskVariant& best = info.task->variants.back();
  if (!query.accuracy || *query.accuracy <= best.accuracy) return Status();
  return Status::invalid_argument(
      fmt::format("task '{}' has no variant with an accuracy of at least {}; the nearest is '{}', with {}: ask for at "
                  "most that, or add a variant",
                  info.name, *query.accuracy, best.model->name, best.accuracy));
}

}  // namespace

InferenceService::InferenceService(const Options& options, const ServedNames& names, LabelledRequestSink& requests,
                                   CallStatistics& statistics, Metrics& metrics, std::function<TimePoint()> now)
    : names_(names),
      requests_(requests),
      statistics_(statistics),
      metrics_(metrics),
      now_(std::move(now)),
      tensors_(options.tensors),
      limits_{.rows_max = options.rows_max / 2, .output_bytes_max = options.tensors.tensor_bytes_max},
      table_(options.rows_max, options.bytes_max) {}

Inference::Started InferenceService::start(const Query& query, const Caller& caller) {
  Result<std::shared_ptr<const ModelInfo>> info = names_.find_model(query.name, query.version);
  if (!info.ok()) return call_error(info.status());
  const std::shared_ptr<ModelCounters> counters = statistics_.of(**info);
  const auto fail = [&](const Status& status) {
    counters->count_failed(now_() - query.arrival);
    return call_error(status);
  };
  if (const Status status = check(tensors_, query); !status.ok()) return fail(status);
  if (const Status status = check_requirements(**info, query); !status.ok()) return fail(status);
  Result<std::unique_ptr<InferenceCall>> call = InferenceCall::make(*info, query, limits_);
  if (!call.ok()) return fail(call.status());
  const Tracer::Begun span = shared_.tracer == nullptr ? Tracer::Begun() : shared_.tracer->begin(query.traceparent);
  if (names_.draining()) return refuse(**call, span, Refusal::kDraining, "the server is shutting down");

  const uint32_t rows = (*call)->rows();
  if (caller.tenant) {
    if (auto over_limit = caller.tenant->enter(rows, now_())) {
      counters->count_failed(now_() - query.arrival);
      return *std::move(over_limit);
    }
  }
  auto made = std::make_unique<PendingCall>(std::move(call).value(), caller, counters, TenantLease(caller.tenant, rows),
                                            span, shared_);
  if (made->handles().empty()) return refuse(made->call(), span, Refusal::kOverload, "too many requests in flight");
  const PendingCall& pending = table_.keep(std::move(made));
  for (const PayloadHandle payload : pending.evicted()) {
    requests_.cancel(RequestId(payload.value()), Refusal::kOverload);
  }
  // It is not answered before this thread is back in its mailbox.
  submit(pending, query.selection);
  if (!pending.due().is_infinite()) alarms_.add(pending.call_id(), pending.due(), caller.mailbox);
  return pending.call_id();
}

CallError InferenceService::refuse(const InferenceCall& call, const Tracer::Begun& span, Refusal refusal,
                                   std::string_view detail) {
  const TimePoint now = now_();
  end_call_span(shared_.tracer, span, call, refusal, RequestId(), now);
  metrics_.count_refused(call.model(), refusal, call.rows(), now - call.arrival(), call.time());
  statistics_.of(call.model())->count_failed(now - call.arrival());
  return call_error(refusal, call.model().name, detail, call.arrival(), now, TimePoint(), call.applied_deadline());
}

void InferenceService::submit(const PendingCall& pending, std::string_view selection) {
  const InferenceCall& call = pending.call();
  // Not so much that no time is left: then the answer may be late, but others need not be.
  const Duration reserve = call.deadline().is_infinite()
                               ? Duration()
                               : std::min(answer_path_.length(), (call.deadline() - call.arrival()) / kPathPartMax);
  Request request{.id = {},
                  .model = call.model().id,
                  .pipeline = call.model().pipeline ? call.model().pipeline->id : PipelineId(),
                  .bucket = call.bucket(),
                  .payload = {},
                  .arrival = call.arrival(),
                  .deadline = call.deadline() - reserve,
                  .reserve = reserve,
                  .offline = call.offline(),
                  .optional = call.optional()};
  if (call.model().task != nullptr) {
    request.task = call.model().task->id;
    request.requirements = call.requirements();
    request.call = RequestId(pending.handles().front().value());
    request.call_rows = call.rows();
  }
  if (const Tenant* tenant = pending.tenant()) {
    request.tenant = tenant->id();
    request.tenant_weight = tenant->weight();
  }
  std::shared_ptr<const CallLabel> label = label_of(pending, selection, true);
  for (size_t row = 0; row < pending.handles().size(); ++row) {
    if (row == kTracedRowsMax && pending.trace()) label = label_of(pending, selection, false);
    request.payload = pending.handles()[row];
    request.id = RequestId(request.payload.value());
    requests_.submit_labelled(request, label);
  }
}

// Null: there is nothing to say of the call.
std::shared_ptr<const CallLabel> InferenceService::label_of(const PendingCall& pending, std::string_view selection,
                                                            bool traced) {
  const std::string& id = pending.call().id();
  traced = traced && pending.trace();
  if (id.empty() && selection.empty() && !traced) return nullptr;
  CallLabel label = call_label(id, selection);
  if (traced) label.trace = pending.trace();
  return std::make_shared<const CallLabel>(std::move(label));
}

void InferenceService::cancel(CallId call) {
  if (PendingCall* pending = table_.find_call(PayloadHandle(call.value()))) pending->cancel();
}

void InferenceService::expire(CallId call) {
  if (PendingCall* pending = table_.find_call(PayloadHandle(call.value()))) pending->expire();
}

Status InferenceService::observe(const Observation& observation) {
  const auto info = names_.find_model(observation.name, observation.version);
  if (!info.ok()) return info.status();
  return Status::unimplemented(
      fmt::format("model '{}' takes no observations: it does not learn while it is served", observation.name));
}

void InferenceService::complete(const Completion& completion) {
  table_.find(completion.payload).call->complete(completion);
}

}  // namespace foliot
