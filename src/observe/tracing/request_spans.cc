#include "observe/tracing/request_spans.h"

#include <utility>

#include "foundation/core/stage_visit.h"

namespace foliot {

void RequestSpans::on_label(RequestId request, std::shared_ptr<const CallLabel> label) {
  labelled_ = request;
  parent_ = label->trace;
}

void RequestSpans::on_model(const ModelInfo& model) {
  if (model.id.value() >= names_.size()) names_.resize(model.id.value() + 1);
  names_[model.id.value()] = model.name;
}

std::string_view RequestSpans::name_of(ModelId model) const {
  return model.value() < names_.size() ? std::string_view(names_[model.value()]) : std::string_view();
}

RequestSpans::Open* RequestSpans::open(const Request& request, const TraceContext& parent, SpanKind kind,
                                       std::string_view name) {
  if (open_.size() >= kOpenMax) {
    tracer_.add_dropped(1);
    return nullptr;
  }
  Open& opened = open_.insert_or_assign(request.id, Open{}).first->second;
  opened.span = {.context = {parent.trace_high, parent.trace_low, tracer_.next_span()},
                 .parent = parent.span,
                 .kind = kind,
                 .begin = request.arrival,
                 .request = request.id};
  opened.span.set_name(name);
  opened.model = request.model;
  return &opened;
}

void RequestSpans::on_request(const Request& request, TimePoint /*now*/) {
  const TraceContext parent = labelled_ == request.id ? std::exchange(parent_, {}) : TraceContext();
  if (parent) {
    open(request, parent, SpanKind::kRequest, name_of(request.model));
    return;
  }
  if (open_.empty()) return;
  const std::optional<uint32_t> slot = visit_slot(request.id);
  if (!slot) return;
  const auto run = open_.find(run_of(request.id));
  if (run == open_.end()) return;
  const std::optional<StageSlots::Place> place = run->second.slots.find(*slot);
  // Copies: open() may move what it is a part of.
  const TraceContext of_run = run->second.span.context;
  open(request, of_run, SpanKind::kStage, place ? run->second.stages[place->stage] : name_of(request.model));
}

void RequestSpans::on_run(const Request& request, const PipelineInfo* pipeline, TimePoint /*now*/) {
  const TraceContext parent = labelled_ == request.id ? std::exchange(parent_, {}) : TraceContext();
  if (!parent) return;
  Open* const run = open(request, parent, SpanKind::kRun, pipeline == nullptr ? "" : pipeline->name);
  if (run == nullptr || pipeline == nullptr) return;
  run->slots = StageSlots(*pipeline);
  for (const PipelineStage& stage : pipeline->stages) run->stages.push_back(stage.name);
}

void RequestSpans::on_action(const Action& action, TimePoint now) {
  if (open_.empty() || action.type != ActionType::kInfer) return;
  for (const BatchRows::Row& row : action.rows) {
    const auto found = open_.find(row.request);
    if (found == open_.end()) continue;
    found->second.sent = now;
    found->second.device = action.device;
  }
}

void RequestSpans::on_outcome(const Action& action, const Outcome& outcome, TimePoint /*now*/) {
  if (open_.empty() || action.type != ActionType::kLoad || !outcome.done()) return;
  for (auto& [id, waiting] : open_) {
    if (waiting.model != action.model || waiting.sent || waiting.span.kind == SpanKind::kRun) continue;
    waiting.device = action.device;
    add_part(waiting, SpanKind::kLoad, outcome.start, outcome.end, 0);
  }
}

void RequestSpans::add_part(const Open& open, SpanKind kind, TimePoint begin, TimePoint end, uint32_t rows) {
  Span span{.context = {open.span.context.trace_high, open.span.context.trace_low, tracer_.next_span()},
            .parent = open.span.context.span,
            .part = kind == SpanKind::kQueue ? SpanPart::kController : SpanPart::kWorker,
            .kind = kind,
            .begin = begin,
            .end = end,
            .request = open.span.request,
            .rows = rows};
  if (kind != SpanKind::kQueue) span.device = open.device;
  span.set_name(name_of(open.model));
  tracer_.add(span);
}

void RequestSpans::add_execution(const Open& open, const Completion& completion) {
  const TimePoint sent = open.sent.value_or(completion.exec_start);
  const TimePoint executed = completion.exec_start + completion.exec_duration;
  add_part(open, SpanKind::kInput, sent, sent + completion.input_duration, 0);
  add_part(open, SpanKind::kExec, completion.exec_start, executed, completion.batch_size);
  add_part(open, SpanKind::kOutput, executed, executed + completion.output_duration, 0);
}

void RequestSpans::on_completion(const Completion& completion, TimePoint /*now*/) {
  if (open_.empty()) return;
  const auto found = open_.find(completion.id);
  if (found == open_.end()) return;
  Open& over = found->second;
  if (over.span.kind != SpanKind::kRun) {
    add_part(over, SpanKind::kQueue, over.span.begin, over.sent.value_or(completion.finished), 0);
    if (completion.batch_size > 0) add_execution(over, completion);
  }
  over.span.end = completion.finished;
  over.span.refusal = completion.refusal;
  tracer_.add(over.span);
  open_.erase(found);
}

void RequestSpans::on_run_over(const Completion& completion, TimePoint now) { on_completion(completion, now); }

}  // namespace foliot
