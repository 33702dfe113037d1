#include "control/controller/pipeline_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/core/stage_visit.h"

namespace foliot {
namespace {

// A stage that fewer of the runs visit is not counted among what follows.
constexpr double kShareCounted = 0.5;
// So much of a share is replaced with each run.
constexpr double kShareStep = 1.0 / 64;
// So much of a stage's wait is replaced with each visit.
constexpr int64_t kWaitPart = 32;
// Without a visit for so long, what it says halves in so long again, so that it keeps nothing away
// that would be met. Of the elements of a stage what is above one halves in the same way.
constexpr Duration kWaitHalf = Duration::milliseconds(250);
// What a run that was computed in part for nothing, and one that was answered, make of the
// inflation of the work ahead.
constexpr double kWasteGrowth = 1.05;
constexpr double kAnswerDecay = 0.9997;
constexpr double kInflationMin = 0.25;
constexpr double kInflationMax = 16;
// The same of runs that are refused when they come, and that are let in, for late decisions.
constexpr double kRefusalGrowth = 1.05;
constexpr double kLetInDecay = 0.999;
constexpr double kLateInflationMax = 1000;

std::string of_stage(const PipelineStage& stage, const std::string& detail) {
  return "stage '" + stage.name + "'" + (detail.empty() ? "" : ": " + detail);
}

}  // namespace

std::string_view to_string(PipelineSlack slack) {
  switch (slack) {
    case PipelineSlack::kShared: return "shared";
    case PipelineSlack::kSplit: return "split";
    case PipelineSlack::kByPath: return "by_path";
  }
  FOLIOT_CHECK(false);
}

std::optional<PipelineSlack> parse_pipeline_slack(std::string_view name) {
  for (const PipelineSlack slack : {PipelineSlack::kShared, PipelineSlack::kSplit, PipelineSlack::kByPath}) {
    if (name == to_string(slack)) return slack;
  }
  return std::nullopt;
}

void PipelineRuns::Wait::record(Duration measured, TimePoint now) {
  mean_ = lately(now);
  mean_ += (measured - mean_) / kWaitPart;
  seen_ = now;
}

Duration PipelineRuns::Wait::lately(TimePoint now) const {
  const Duration silent = now - seen_ - kWaitHalf;
  return silent <= Duration() ? mean_ : mean_.scaled(std::exp2(-silent.to_seconds() / kWaitHalf.to_seconds()));
}

void PipelineRuns::Elements::record(uint32_t count, TimePoint now) {
  const double lately_had = lately(now);
  mean_ = lately_had + std::max(kShareStep, 1.0 / (1.0 + recorded_)) * (count - lately_had);
  ++recorded_;
  seen_ = now;
}

double PipelineRuns::Elements::lately(TimePoint now) const {
  const Duration silent = now - seen_ - kWaitHalf;
  if (silent <= Duration() || mean_ <= 1) return mean_;
  return 1 + (mean_ - 1) * std::exp2(-silent.to_seconds() / kWaitHalf.to_seconds());
}

void PipelineRuns::add(std::shared_ptr<const PipelineInfo> info) {
  FOLIOT_CHECK(info->id != PipelineId() && find(info->id) == nullptr);
  auto pipeline = std::make_shared<Pipeline>();
  const size_t count = info->stages.size();
  FOLIOT_CHECK(count > 0 && count <= kStagesMax);
  pipeline->slots = StageSlots(*info);
  pipeline->elements.resize(count);
  pipeline->row_costs.resize(count);
  pipeline->successors.resize(count);
  pipeline->shares.assign(count, 1);
  pipeline->waits.resize(count);
  pipeline->rest_waits.resize(count);
  pipeline->path_waits.resize(count);
  pipeline->rests.resize(count);
  pipeline->paths.resize(count);
  pipeline->costs.resize(count);
  pipeline->before.resize(count);
  pipeline->decided_late.resize(count);
  pipeline->kinds.resize(count);
  pipeline->takers.resize(count);
  for (uint32_t stage = 0; stage < count; ++stage) pipeline->answers.push_back(answers_of(*info, stage));
  const auto depends = [&](uint32_t stage, uint32_t on) {
    FOLIOT_CHECK(on < stage);
    std::vector<uint32_t>& successors = pipeline->successors[on];
    if (successors.empty() || successors.back() != stage) successors.push_back(stage);
    pipeline->before[stage] |= pipeline->before[on];
    pipeline->before[stage].set(on);
  };
  for (uint32_t stage = 0; stage < count; ++stage) {
    for (const std::vector<TensorSource>& sources : info->stages[stage].inputs) {
      for (const TensorSource& source : sources) {
        if (!source.stage) continue;
        depends(stage, *source.stage);
        pipeline->takers[*source.stage].set(stage);
      }
    }
    for (const PipelineStage::Requirement& required : info->stages[stage].requires_all) depends(stage, required.stage);
    if (const auto& for_each = info->stages[stage].for_each) depends(stage, for_each->stage);
  }
  pipeline->info = std::move(info);
  pipelines_.push_back(std::move(pipeline));
}

void PipelineRuns::remove(PipelineId id) {
  std::erase_if(pipelines_, [&](const auto& pipeline) { return pipeline->info->id == id; });
}

// In the order of ids, so that the same events give the same completions.
void PipelineRuns::remove_model(ModelId model, TimePoint now) {
  std::vector<RequestId> removed;
  runs_.for_each([&](RequestId id, const std::unique_ptr<Run>& run) {
    const bool has =
        run->pipeline != nullptr &&
        std::ranges::any_of(run->pipeline->info->stages, [&](const auto& stage) { return stage.model->id == model; });
    if (has) removed.push_back(id);
  });
  std::ranges::sort(removed);
  for (const RequestId id : removed) cancel(id, Refusal::kUnloaded, now);
}

const PipelineInfo* PipelineRuns::info(PipelineId id) const {
  const std::shared_ptr<Pipeline> found = find(id);
  return found == nullptr ? nullptr : found->info.get();
}

std::shared_ptr<PipelineRuns::Pipeline> PipelineRuns::find(PipelineId id) const {
  const auto found = std::ranges::find_if(pipelines_, [&](const auto& pipeline) { return pipeline->info->id == id; });
  return found == pipelines_.end() ? nullptr : *found;
}

// ---- Times ----

// In one batch, or in the largest ones on all devices.
Duration PipelineRuns::least_time(const PipelineStage& stage, const Request& run, uint32_t visits) const {
  const ModelId model = stage.model->id;
  const std::optional<DeviceId> device = cluster_.has_model(model) ? cluster_.first_able(model) : std::nullopt;
  if (!device || visits == 0) return Duration();
  const bool cold = cluster_.copies[model.value()] == 0;
  const std::vector<uint32_t>& sizes = cluster_.runnable(*device, model)->batch_sizes;
  const auto fitting = std::min(std::ranges::lower_bound(sizes, visits), std::prev(sizes.end()));
  const auto position = static_cast<uint32_t>(fitting - sizes.begin());
  const uint32_t batches = (visits + *fitting - 1) / *fitting;
  const uint32_t devices = std::max(cluster_.device_count(cluster_.device(*device).kind()), 1u);
  const uint32_t in_turn = (batches + devices - 1) / devices;
  return (cold ? cluster_.durations().load(*device, model) : Duration()) +
         cluster_.durations().exec({*device, model, stage.bucket.value_or(run.bucket), position}) * in_turn +
         cluster_.least_margin();
}

uint32_t PipelineRuns::expected_visits(const Pipeline& pipeline, uint32_t stage, TimePoint now) {
  if (!pipeline.info->stages[stage].for_each) return 1;
  const double elements = pipeline.elements[stage].lately(now);
  // Not what is left of earlier ones alone.
  return elements < kShareCounted ? 0 : static_cast<uint32_t>(std::max(1.0, std::ceil(elements - kShareStep)));
}

Duration PipelineRuns::least_cost(const PipelineStage& stage, const Request& run, DeviceId device) const {
  const ModelId model = stage.model->id;
  const std::vector<uint32_t>& sizes = cluster_.runnable(device, model)->batch_sizes;
  Duration least = Duration::max();
  for (uint32_t i = 0; i < sizes.size(); ++i) {
    least =
        std::min(least, cluster_.durations().exec({device, model, stage.bucket.value_or(run.bucket), i}) / sizes[i]);
  }
  return least;
}

void PipelineRuns::measure(Pipeline& pipeline, const Request& run, TimePoint now) const {
  if (pipeline.measured == now && pipeline.bucket == run.bucket) return;
  pipeline.measured = now;
  pipeline.bucket = run.bucket;
  pipeline.whole = Duration();
  pipeline.whole_wait = Duration();
  for (auto stage = static_cast<uint32_t>(pipeline.rests.size()); stage-- > 0;) {
    Duration rest;
    for (const uint32_t next : pipeline.successors[stage]) rest = std::max(rest, pipeline.paths[next]);
    pipeline.rests[stage] = rest;
    const bool counts = pipeline.shares[stage] >= kShareCounted;
    pipeline.paths[stage] =
        rest +
        (counts ? least_time(pipeline.info->stages[stage], run, expected_visits(pipeline, stage, now)) : Duration());
    Duration wait;
    for (const uint32_t next : pipeline.successors[stage]) wait = std::max(wait, pipeline.path_waits[next]);
    pipeline.rest_waits[stage] = wait;
    pipeline.path_waits[stage] = wait + (counts ? pipeline.waits[stage].lately(now) : Duration());
    pipeline.whole = std::max(pipeline.whole, pipeline.paths[stage]);
    pipeline.whole_wait = std::max(pipeline.whole_wait, pipeline.path_waits[stage]);
    const ModelId model = pipeline.info->stages[stage].model->id;
    const std::optional<DeviceId> device = cluster_.has_model(model) ? cluster_.first_able(model) : std::nullopt;
    pipeline.costs[stage] = pipeline.row_costs[stage] = Duration();
    if (!device) continue;
    pipeline.kinds[stage] = cluster_.device(*device).kind();
    pipeline.row_costs[stage] = least_cost(pipeline.info->stages[stage], run, *device);
    const double visits = pipeline.shares[stage] * pipeline.elements[stage].lately(now);
    pipeline.costs[stage] = pipeline.row_costs[stage].scaled(visits);
  }
  for (uint32_t stage = 0; stage < pipeline.costs.size(); ++stage) {
    pipeline.decided_late[stage] = slack_ == PipelineSlack::kShared && is_decided_late(pipeline, stage);
  }
}

bool PipelineRuns::is_decided_late(const Pipeline& pipeline, uint32_t stage) const {
  const double share = pipeline.shares[stage];
  Duration before;
  for (uint32_t other = 0; other < pipeline.costs.size(); ++other) {
    if (other != stage && !pipeline.before[other].test(stage)) before += pipeline.costs[other];
  }
  return pipeline.costs[stage].scaled((1 - share) / std::max(share, kShareStep)) > before;
}

Duration PipelineRuns::wait_for(KindId kind, const Request& run) const {
  const Duration before = ahead_.before(kind, run.deadline) / std::max(cluster_.device_count(kind), 1u);
  return before.scaled(inflation_);
}

TimePoint PipelineRuns::earliest_end(const Pipeline& pipeline, const Request& run, TimePoint now) const {
  if (slack_ != PipelineSlack::kShared) return now + pipeline.whole;
  Duration wait;
  for (const KindId kind : pipeline.kinds) wait = std::max(wait, wait_for(kind, run));
  return now + wait + pipeline.whole + pipeline.whole_wait;
}

TimePoint PipelineRuns::earliest_end_after(const Pipeline& pipeline, uint32_t stage, uint32_t visits,
                                           const Request& run, TimePoint now) const {
  const Duration least = least_time(pipeline.info->stages[stage], run, visits) + pipeline.rests[stage];
  return now + wait_for(pipeline.kinds[stage], run).scaled(pipeline.late_inflation) + least +
         pipeline.rest_waits[stage];
}

void PipelineRuns::add_work(Run& run) {
  for (uint32_t stage = 0; stage < run.pipeline->costs.size(); ++stage) {
    if (!run.pipeline->decided_late[stage]) add_work(run, stage, run.pipeline->costs[stage]);
  }
}

void PipelineRuns::add_work(Run& run, uint32_t stage, Duration work) {
  run.costs[stage] = work;
  ahead_.add(run.pipeline->kinds[stage], run.request.deadline, work);
}

void PipelineRuns::remove_work(Run& run, uint32_t stage, Duration work) {
  run.costs[stage] -= work;
  if (work > Duration()) ahead_.remove(run.pipeline->kinds[stage], run.request.deadline, work);
}

// ---- Runs ----

void PipelineRuns::begin(const Request& request, TimePoint now) {
  FOLIOT_CHECK(!visit_slot(request.id) && !visit_slot(request.payload) && runs_.find(request.id) == nullptr);
  std::unique_ptr<Run> run = take_spare();
  run->request = request;
  run->pipeline = find(request.pipeline);
  run->completion = {.id = request.id,
                     .pipeline = request.pipeline,
                     .payload = request.payload,
                     .detail = {},
                     .arrival = request.arrival,
                     .deadline = request.answer_by()};
  if (run->pipeline != nullptr && held_outputs_ != nullptr) run->holders.resize(run->pipeline->slots.size());
  if (run->pipeline == nullptr || !has_bucket(*run->pipeline, request.bucket)) {
    refuse(*run, Refusal::kUnloaded, {}, TimePoint());
  } else if (!reserve_room(*run)) {
    refuse(*run, Refusal::kOverload, "no room to hold what its stages compute", TimePoint());
  } else {
    measure(*run->pipeline, request, now);
    const TimePoint least = now + run->pipeline->whole;
    const TimePoint earliest = earliest_end(*run->pipeline, request, now);
    if (least > request.deadline) {
      refuse(*run, Refusal::kUnmeetable, "all stages together", least + request.reserve);
    } else if (earliest > request.deadline) {
      refuse(*run, Refusal::kOverload, "all stages together", earliest + request.reserve);
      run->pipeline->late_inflation = std::min(kLateInflationMax, run->pipeline->late_inflation * kRefusalGrowth);
    } else if (!request.best_effort()) {
      run->pipeline->late_inflation = std::max(1.0, run->pipeline->late_inflation * kLetInDecay);
      add_work(*run);
    }
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
  const std::optional<uint32_t> slot = visit_slot(request);
  if (!slot) return false;
  const std::unique_ptr<Run>* run = runs_.find(run_of(request));
  return run != nullptr && (*run)->visits.test(*slot);
}

void PipelineRuns::take_over(TimePoint now) {
  while (!over_.empty()) {
    std::swap(over_, taken_);
    for (const Completion& visit : taken_) take(visit, now);
    taken_.clear();
  }
}

void PipelineRuns::take(const Completion& visit, TimePoint now) {
  const RequestId id = run_of(visit.id);
  Run& run = **runs_.find(id);
  const uint32_t slot = *visit_slot(visit.id);
  const uint32_t stage = run.pipeline->slots.at(slot).stage;
  run.visits.reset(slot);
  remove_work(run, stage, run.costs[stage] / run.left[stage]);
  --run.left[stage];
  run.under_way.set(stage, run.left[stage] > 0);
  // It was computed, in time or not.
  if (visit.action != ActionId() && held_outputs_ != nullptr && run.pipeline->takers[stage].any()) {
    run.held.set(slot);
    run.holders[slot] = visit.device;
  }
  if (visit.served()) {
    take_served(run, slot, visit, now);
  } else if (run.completion.served()) {
    refuse(run, visit.refusal, of_stage(run.pipeline->info->stages[stage], visit.detail), visit.earliest_completion);
    cancel_visits(id, Refusal::kCancelled, now);
  }
  go_on(id, now);
}

void PipelineRuns::take_served(Run& run, uint32_t slot, const Completion& visit, TimePoint now) {
  const auto [stage, element] = run.pipeline->slots.at(slot);
  // Those that do not fit into the first batch of their stage wait for that, too.
  if (element == 0) run.pipeline->waits[stage].record(visit.exec_start - visit.arrival, now);
  run.visited.set(stage, run.left[stage] == 0);
  run.conditions[stage] = visit.conditions;
  Completion& whole = run.completion;
  // Elements that share a batch are in one that was counted already.
  const bool is_counted = run.pipeline->info->stages[stage].for_each && visit.action == whole.action;
  if (whole.exec_start == TimePoint()) whole.exec_start = visit.exec_start;
  if (!is_counted) {
    whole.input_duration += visit.input_duration;
    whole.exec_duration += visit.exec_duration;
    whole.output_duration += visit.output_duration;
  }
  whole.cold_start = whole.cold_start || visit.cold_start;
  whole.batch_size = visit.batch_size;
  whole.action = visit.action;
  whole.device = visit.device;
  if (!run.pipeline->answers[stage].empty()) whole.visits.push_back({slot, visit.action, visit.device});
  if (run.pipeline->info->stages[stage].count && whole.served()) take_count(run, stage, visit.count, now);
}

void PipelineRuns::take_count(Run& run, uint32_t stage, float count, TimePoint now) {
  const PipelineStage& own = run.pipeline->info->stages[stage];
  const std::optional<uint32_t> elements = whole_count(count, own.count->at_most);
  run.counts[stage] = static_cast<uint8_t>(elements.value_or(0));
  if (elements) return;
  const std::string detail = fmt::format(
      "its output '{}' is {}, and must be a whole number from 0 to {}: it counts the elements that "
      "other stages are visited for",
      own.model->outputs[own.count->output].name, count, own.count->at_most);
  refuse(run, Refusal::kModelError, of_stage(own, detail), TimePoint());
  cancel_visits(run.request.id, Refusal::kCancelled, now);
}

void PipelineRuns::refuse(Run& run, Refusal reason, const std::string& detail, TimePoint earliest) {
  run.completion.refusal = reason;
  run.completion.detail = detail;
  run.completion.earliest_completion = earliest;
}

void PipelineRuns::cancel_visits(RequestId id, Refusal reason, TimePoint now) {
  const Run& run = **runs_.find(id);
  const SlotSet visits = run.visits;
  for (uint32_t slot = 0; visits.any() && slot < run.pipeline->slots.size(); ++slot) {
    if (visits.test(slot)) owner_.cancel_visit(visit_of(id, slot), reason, now);
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
    if (step == Step::kVisit) {
      if (visit_stage(run, stage, now)) continue;
      cancel_visits(id, Refusal::kCancelled, now);
      break;
    }
    run.skipped.set(stage);
    remove_work(run, stage);
  }
  if (run.under_way.none()) return end(id, now);
  discard_used(run);
}

PipelineRuns::Step PipelineRuns::next_step(const Run& run, uint32_t stage) const {
  const PipelineStage& own = run.pipeline->info->stages[stage];
  bool waits = false;
  if (own.for_each) {
    if (run.skipped.test(own.for_each->stage)) return Step::kSkip;
    waits = !run.visited.test(own.for_each->stage);
  }
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

bool PipelineRuns::visit_stage(Run& run, uint32_t stage, TimePoint now) {
  const auto& for_each = run.pipeline->info->stages[stage].for_each;
  const uint32_t visits = for_each ? run.counts[for_each->stage] : 1;
  if (for_each) run.pipeline->elements[stage].record(visits, now);
  if (visits > 0) {
    if (!let_in(run, stage, visits, now)) return false;
    submit_visits(run, stage, visits, now);
    return true;
  }
  run.visited.set(stage);
  remove_work(run, stage);
  if (!run.pipeline->answers[stage].empty()) run.completion.empty_stages.push_back(stage);
  return true;
}

bool PipelineRuns::let_in(Run& run, uint32_t stage, uint32_t visits, TimePoint now) {
  const bool decided = run.request.best_effort() || run.costs[stage] > Duration();
  if (decided || !run.pipeline->decided_late[stage]) return true;
  measure(*run.pipeline, run.request, now);
  const TimePoint earliest = earliest_end_after(*run.pipeline, stage, visits, run.request, now);
  if (earliest > run.request.deadline) {
    refuse(run, Refusal::kOverload, of_stage(run.pipeline->info->stages[stage], {}), earliest + run.request.reserve);
    return false;
  }
  add_work(run, stage, run.pipeline->costs[stage].scaled(1 / std::max(run.pipeline->shares[stage], kShareStep)));
  return true;
}

void PipelineRuns::submit_visits(Run& run, uint32_t stage, uint32_t visits, TimePoint now) {
  const PipelineStage& own = run.pipeline->info->stages[stage];
  if (own.for_each && !run.request.best_effort()) {  // in place of what was expected of it
    remove_work(run, stage);
    add_work(run, stage, run.pipeline->row_costs[stage] * visits);
  }
  Request visit = run.request;
  visit.pipeline = PipelineId();
  visit.model = own.model->id;
  visit.bucket = own.bucket.value_or(run.request.bucket);
  visit.arrival = run.visited.none() ? run.request.arrival : now;
  if (!run.request.best_effort()) {
    measure(*run.pipeline, run.request, now);
    const Duration reserved = reserve(*run.pipeline, stage, run.request);
    visit.deadline = run.request.deadline - reserved;
    visit.reserve = run.request.reserve + reserved;
  }
  run.under_way.set(stage);
  run.left[stage] = static_cast<uint8_t>(visits);
  const uint32_t first = run.pipeline->slots.first(stage);
  for (uint32_t slot = first; slot < first + visits; ++slot) {
    visit.id = visit_of(run.request.id, slot);
    visit.payload = visit_of(run.request.payload, slot);
    run.visits.set(slot);
    owner_.submit_visit(visit, now);
  }
}

// ---- Where workers hold what stages compute ----

bool PipelineRuns::has_bucket(const Pipeline& pipeline, BucketId bucket) {
  return std::ranges::all_of(pipeline.info->stages, [bucket](const PipelineStage& stage) {
    return stage.bucket.value_or(bucket).value() < stage.model->buckets.size();
  });
}

HeldRoom PipelineRuns::room_of(const Pipeline& pipeline, BucketId bucket) {
  HeldRoom room{0, 0};
  for (uint32_t stage = 0; stage < pipeline.takers.size(); ++stage) {
    if (pipeline.takers[stage].none()) continue;
    const PipelineStage& own = pipeline.info->stages[stage];
    const Bucket& dimensions = own.model->buckets[own.bucket.value_or(bucket).value()];
    room.payloads += own.visits_most();
    for (const TensorSpec& output : own.model->outputs) {
      room.bytes += own.visits_most() * byte_size(output.type, shape_in(output, dimensions));
    }
  }
  return room;
}

bool PipelineRuns::reserve_room(Run& run) {
  if (held_outputs_ == nullptr) return true;
  const HeldRoom room = room_of(*run.pipeline, run.request.bucket);
  if (room.bytes > room_.bytes - std::min(room_.bytes, reserved_.bytes) ||
      room.payloads > room_.payloads - std::min(room_.payloads, reserved_.payloads)) {
    return false;
  }
  run.room = room;
  reserved_.bytes += room.bytes;
  reserved_.payloads += room.payloads;
  return true;
}

void PipelineRuns::discard(const Run& run, uint32_t slot) {
  held_outputs_->discard(visit_of(run.request.id, slot), run.holders[slot]);
}

void PipelineRuns::discard_used(Run& run) {
  if (run.held.none()) return;
  for (uint32_t slot = 0; slot < run.pipeline->slots.size(); ++slot) {
    const uint32_t stage = run.pipeline->slots.at(slot).stage;
    if (!run.held.test(slot) || (run.pipeline->takers[stage] & ~(run.visited | run.skipped)).any()) continue;
    run.held.reset(slot);
    discard(run, slot);
  }
}

VisitOrder PipelineRuns::order(RequestId visit) const {
  const Run& run = **runs_.find(run_of(visit));
  const StageSlots::Place place = run.pipeline->slots.at(*visit_slot(visit));
  const uint32_t stage = place.stage;
  const PipelineStage& own = run.pipeline->info->stages[stage];
  VisitOrder order{.inputs = {},
                   .conditions = own.conditions,
                   .answers = run.pipeline->answers[stage],
                   .held = run.pipeline->takers[stage].any(),
                   .count = own.count ? std::optional(own.count->output) : std::nullopt};
  for (const std::vector<TensorSource>& sources : own.inputs) order.inputs.push_back(input_order(run, place, sources));
  return order;
}

// Of what was visited for each element, the visit's own one, or all.
VisitOrder::Input PipelineRuns::input_order(const Run& run, const StageSlots::Place& visit,
                                            const std::vector<TensorSource>& sources) const {
  const auto source = std::ranges::find_if(
      sources, [&](const TensorSource& each) { return !each.stage || run.visited.test(*each.stage); });
  FOLIOT_CHECK(source != sources.end());
  const Pipeline& pipeline = *run.pipeline;
  VisitOrder::Input input{.tensor = source->tensor};
  const uint32_t most = pipeline.slots.count(visit.stage);
  if (!source->stage) {
    if (source->each) input.taken = {visit.element, most};
    input.pieces.push_back({});
    return input;
  }
  const auto& for_each = pipeline.info->stages[*source->stage].for_each;
  uint32_t slot = pipeline.slots.first(*source->stage);
  uint32_t end = slot + 1;
  if (for_each && source->each) {
    slot += visit.element;
    end = slot + 1;
  } else if (for_each) {
    end = slot + run.counts[for_each->stage];
    input.pieces_most = for_each->at_most;
  } else if (source->each) {
    input.taken = {visit.element, most};
  }
  for (; slot < end; ++slot) input.pieces.push_back({slot, run.holders[slot]});
  return input;
}

// In the order of ids, so that the same events give the same completions.
void PipelineRuns::on_device_lost(DeviceId device, TimePoint now) {
  if (held_outputs_ == nullptr) return;
  advance(now);                                      // what it holds is known
  std::vector<std::pair<RequestId, uint32_t>> lost;  // with the first stage that is lost
  runs_.for_each([&](RequestId id, const std::unique_ptr<Run>& run) {
    std::optional<uint32_t> first;
    for (uint32_t slot = 0; run->held.any() && slot < run->pipeline->slots.size(); ++slot) {
      if (!run->held.test(slot) || run->holders[slot] != device) continue;
      run->held.reset(slot);
      if (!first) first = run->pipeline->slots.at(slot).stage;
    }
    if (first) lost.emplace_back(id, *first);
  });
  std::ranges::sort(lost);
  for (const auto& [id, stage] : lost) {
    Run& run = **runs_.find(id);
    if (!run.completion.served()) continue;  // it ends with its last visit
    refuse(run, Refusal::kWorkerLost,
           of_stage(run.pipeline->info->stages[stage], "the worker that held its outputs is lost"), TimePoint());
    cancel_visits(id, Refusal::kCancelled, now);
    if (run.under_way.none()) end(id, now);
  }
}

std::unique_ptr<PipelineRuns::Run> PipelineRuns::take_spare() {
  if (spare_.empty()) return std::make_unique<Run>();
  std::unique_ptr<Run> run = std::move(spare_.back());
  spare_.pop_back();
  return run;
}

Duration PipelineRuns::reserve(const Pipeline& pipeline, uint32_t stage, const Request& run) const {
  const Duration rest = pipeline.rests[stage];
  if (slack_ != PipelineSlack::kSplit) return rest + pipeline.rest_waits[stage];
  if (pipeline.whole == Duration()) return rest;
  return (run.deadline - run.arrival).scaled(rest.to_seconds() / pipeline.whole.to_seconds());
}

void PipelineRuns::end(RequestId id, TimePoint now) {
  std::unique_ptr<Run> run = std::move(*runs_.find(id));
  runs_.erase(id);
  if (run->pipeline != nullptr) {
    for (uint32_t stage = 0; stage < run->pipeline->costs.size(); ++stage) remove_work(*run, stage);
  }
  const bool in_vain = run->completion.refusal == Refusal::kExpired ||
                       run->completion.refusal == Refusal::kUnmeetable || run->completion.refusal == Refusal::kLate;
  if (in_vain && run->visited.any()) {
    inflation_ = std::min(kInflationMax, inflation_ * kWasteGrowth);
  } else if (run->completion.served()) {
    inflation_ = std::max(kInflationMin, inflation_ * kAnswerDecay);
  }
  for (uint32_t slot = 0; run->held.any() && slot < run->pipeline->slots.size(); ++slot) {
    if (run->held.test(slot)) discard(*run, slot);
  }
  reserved_.bytes -= run->room.bytes;
  reserved_.payloads -= run->room.payloads;
  if (!run->completion.served()) {
    run->completion.visits.clear();
    run->completion.empty_stages.clear();
  }
  std::ranges::sort(run->completion.empty_stages);
  run->completion.finished = now;
  owner_.run_over(run->completion, now);
  *run = Run();  // its models may go
  spare_.push_back(std::move(run));
}

}  // namespace foliot
