#include "controller/pipeline_runs.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "core/stage_visit.h"

namespace foliot {
namespace {

// A stage that fewer of the runs visit is not counted among what follows.
constexpr double kShareCounted = 0.5;
// So much of a share is replaced with each run.
constexpr double kShareStep = 1.0 / 64;

std::string of_stage(const PipelineStage& stage, const std::string& detail) {
  return "stage '" + stage.name + "'" + (detail.empty() ? "" : ": " + detail);
}

}  // namespace

void PipelineRuns::add(std::shared_ptr<const PipelineInfo> info) {
  FOLIOT_CHECK(info->id != PipelineId() && find(info->id) == nullptr);
  auto pipeline = std::make_shared<Pipeline>();
  const size_t count = info->stages.size();
  FOLIOT_CHECK(count > 0 && count <= kStagesMax);
  pipeline->successors.resize(count);
  pipeline->shares.assign(count, 1);
  pipeline->rests.resize(count);
  pipeline->paths.resize(count);
  const auto depends = [&](uint32_t stage, uint32_t on) {
    FOLIOT_CHECK(on < stage);
    std::vector<uint32_t>& successors = pipeline->successors[on];
    if (successors.empty() || successors.back() != stage) successors.push_back(stage);
  };
  for (uint32_t stage = 0; stage < count; ++stage) {
    for (const std::vector<TensorSource>& sources : info->stages[stage].inputs) {
      for (const TensorSource& source : sources) {
        if (source.stage) depends(stage, *source.stage);
      }
    }
    for (const PipelineStage::Requirement& required : info->stages[stage].requires_all) depends(stage, required.stage);
  }
  pipeline->info = std::move(info);
  pipelines_.push_back(std::move(pipeline));
}

void PipelineRuns::remove(PipelineId id) {
  std::erase_if(pipelines_, [&](const auto& pipeline) { return pipeline->info->id == id; });
}

std::shared_ptr<PipelineRuns::Pipeline> PipelineRuns::find(PipelineId id) const {
  const auto found = std::ranges::find_if(pipelines_, [&](const auto& pipeline) { return pipeline->info->id == id; });
  return found == pipelines_.end() ? nullptr : *found;
}

// ---- Times ----

Duration PipelineRuns::least_time(const PipelineStage& stage, const Request& run) const {
  const ModelId model = stage.model->id;
  const std::optional<DeviceId> device = cluster_.has_model(model) ? cluster_.first_able(model) : std::nullopt;
  if (!device) return Duration();
  const bool cold = cluster_.copies[model.value()] == 0;
  return (cold ? cluster_.durations().load(*device, model) : Duration()) +
         cluster_.durations().exec({*device, model, stage.bucket.value_or(run.bucket), 0}) + cluster_.least_margin();
}

void PipelineRuns::measure(Pipeline& pipeline, const Request& run, TimePoint now) const {
  if (pipeline.measured == now && pipeline.bucket == run.bucket) return;
  pipeline.measured = now;
  pipeline.bucket = run.bucket;
  pipeline.whole = Duration();
  for (auto stage = static_cast<uint32_t>(pipeline.rests.size()); stage-- > 0;) {
    Duration rest;
    for (const uint32_t next : pipeline.successors[stage]) rest = std::max(rest, pipeline.paths[next]);
    pipeline.rests[stage] = rest;
    const bool counts = pipeline.shares[stage] >= kShareCounted;
    pipeline.paths[stage] = rest + (counts ? least_time(pipeline.info->stages[stage], run) : Duration());
    pipeline.whole = std::max(pipeline.whole, pipeline.paths[stage]);
  }
}

// ---- Runs ----

void PipelineRuns::begin(const Request& request, TimePoint now) {
  FOLIOT_CHECK(!stage_of(request.id) && !stage_of(request.payload) && runs_.find(request.id) == nullptr);
  std::unique_ptr<Run> run = take_spare();
  run->request = request;
  run->pipeline = find(request.pipeline);
  run->completion = {.id = request.id,
                     .payload = request.payload,
                     .detail = {},
                     .arrival = request.arrival,
                     .deadline = request.answer_by()};
  if (run->pipeline == nullptr) {
    refuse(*run, Refusal::kUnloaded, {}, TimePoint());
  } else {
    measure(*run->pipeline, request, now);
    const TimePoint earliest = now + run->pipeline->whole;
    if (earliest > request.deadline) refuse(*run, Refusal::kUnmeetable, "all stages together", earliest);
  }
  runs_.insert(request.id, std::move(run));
  go_on(request.id, now);
}

void PipelineRuns::cancel(RequestId id, Refusal reason, TimePoint now) {
  std::unique_ptr<Run>* found = runs_.find(id);
  if (found == nullptr || !(*found)->completion.served()) return;
  refuse(**found, reason, {}, TimePoint());
  cancel_visits(id, reason, now);
  if ((*runs_.find(id))->under_way.none()) end(id, now);
}

bool PipelineRuns::is_visit(RequestId request) const {
  const std::optional<uint32_t> stage = stage_of(request);
  if (!stage || *stage >= kStagesMax) return false;
  const std::unique_ptr<Run>* run = runs_.find(run_of(request));
  return run != nullptr && (*run)->under_way.test(*stage);
}

bool PipelineRuns::advance(TimePoint now) {
  if (over_.empty()) return false;
  while (!over_.empty()) {
    std::swap(over_, taken_);
    for (const Completion& visit : taken_) take(visit, now);
    taken_.clear();
  }
  return true;
}

void PipelineRuns::take(const Completion& visit, TimePoint now) {
  const RequestId id = run_of(visit.id);
  Run& run = **runs_.find(id);
  const uint32_t stage = *stage_of(visit.id);
  run.under_way.reset(stage);
  if (visit.served()) {
    take_served(run, stage, visit);
  } else if (run.completion.served()) {
    refuse(run, visit.refusal, of_stage(run.pipeline->info->stages[stage], visit.detail), visit.earliest_completion);
    cancel_visits(id, Refusal::kCancelled, now);
  }
  go_on(id, now);
}

void PipelineRuns::take_served(Run& run, uint32_t stage, const Completion& visit) {
  run.visited.set(stage);
  run.conditions[stage] = visit.conditions;
  Completion& whole = run.completion;
  if (whole.exec_start == TimePoint()) whole.exec_start = visit.exec_start;
  whole.input_duration += visit.input_duration;
  whole.exec_duration += visit.exec_duration;
  whole.output_duration += visit.output_duration;
  whole.cold_start = whole.cold_start || visit.cold_start;
  whole.batch_size = visit.batch_size;
  whole.action = visit.action;
  whole.device = visit.device;
}

void PipelineRuns::refuse(Run& run, Refusal reason, const std::string& detail, TimePoint earliest) {
  run.completion.refusal = reason;
  run.completion.detail = detail;
  run.completion.earliest_completion = earliest;
}

void PipelineRuns::cancel_visits(RequestId id, Refusal reason, TimePoint now) {
  const StageSet under_way = (*runs_.find(id))->under_way;
  for (uint32_t stage = 0; stage < kStagesMax; ++stage) {
    if (under_way.test(stage)) owner_.cancel_visit(visit_of(id, stage), reason, now);
  }
}

// What is skipped or visited is known of all earlier stages when one is looked at.
void PipelineRuns::go_on(RequestId id, TimePoint now) {
  Run& run = **runs_.find(id);
  const auto count = static_cast<uint32_t>(run.completion.served() ? run.pipeline->info->stages.size() : 0);
  for (uint32_t stage = 0; stage < count; ++stage) {
    if (run.visited.test(stage) || run.skipped.test(stage) || run.under_way.test(stage)) continue;
    const Step step = next_step(run, stage);
    if (step == Step::kWait) continue;
    double& share = run.pipeline->shares[stage];
    share += kShareStep * ((step == Step::kVisit ? 1 : 0) - share);
    step == Step::kVisit ? visit(run, stage, now) : void(run.skipped.set(stage));
  }
  if (run.under_way.none()) end(id, now);
}

PipelineRuns::Step PipelineRuns::next_step(const Run& run, uint32_t stage) const {
  const PipelineStage& own = run.pipeline->info->stages[stage];
  bool waits = false;
  for (const PipelineStage::Requirement& required : own.requires_all) {
    if (run.skipped.test(required.stage)) return Step::kSkip;
    if (!run.visited.test(required.stage)) {
      waits = true;
    } else if ((run.conditions[required.stage] >> required.condition & 1) == 0) {
      return Step::kSkip;
    }
  }
  for (const std::vector<TensorSource>& sources : own.inputs) {
    const auto source = std::ranges::find_if(
        sources, [&](const TensorSource& each) { return !each.stage || !run.skipped.test(*each.stage); });
    if (source == sources.end()) return Step::kSkip;
    waits = waits || (source->stage && !run.visited.test(*source->stage));
  }
  return waits ? Step::kWait : Step::kVisit;
}

void PipelineRuns::visit(Run& run, uint32_t stage, TimePoint now) {
  const PipelineStage& own = run.pipeline->info->stages[stage];
  Request visit = run.request;
  visit.id = visit_of(run.request.id, stage);
  visit.payload = visit_of(run.request.payload, stage);
  visit.pipeline = PipelineId();
  visit.model = own.model->id;
  visit.bucket = own.bucket.value_or(run.request.bucket);
  visit.arrival = run.visited.none() ? run.request.arrival : now;
  if (!run.request.best_effort()) {
    measure(*run.pipeline, run.request, now);
    visit.deadline = run.request.deadline - run.pipeline->rests[stage];
    visit.reserve = run.request.reserve + run.pipeline->rests[stage];
  }
  run.under_way.set(stage);
  owner_.submit_visit(visit, now);
}

std::unique_ptr<PipelineRuns::Run> PipelineRuns::take_spare() {
  if (spare_.empty()) return std::make_unique<Run>();
  std::unique_ptr<Run> run = std::move(spare_.back());
  spare_.pop_back();
  *run = Run();
  return run;
}

void PipelineRuns::end(RequestId id, TimePoint now) {
  std::unique_ptr<Run> run = std::move(*runs_.find(id));
  runs_.erase(id);
  run->completion.finished = now;
  owner_.run_over(run->completion, now);
  spare_.push_back(std::move(run));
}

}  // namespace foliot
