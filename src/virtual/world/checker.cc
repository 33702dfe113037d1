#include "virtual/world/checker.h"

#include <algorithm>
#include <limits>

#include "foundation/base/check.h"
#include "foundation/core/stage_visit.h"

namespace foliot {
Checker::Device& Checker::device(DeviceId id) {
  if (id.value() >= devices_.size()) devices_.resize(id.value() + 1);
  return devices_[id.value()];
}

void Checker::on_model(const ModelInfo& model) {
  if (model.id.value() >= runnables_.size()) runnables_.resize(model.id.value() + 1);
  targets_.resize(runnables_.size());
  runnables_[model.id.value()] = model.runnables;
  for (Device& device : devices_) device.failed_loads.erase(model.id);
}

void Checker::on_model_extended(const ModelInfo& model) { runnables_.at(model.id.value()) = model.runnables; }

const Runnable* Checker::runnable(const Device& device, ModelId model) const {
  const std::vector<Runnable>& runnables = runnables_.at(model.value());
  const auto found = std::ranges::find(runnables, device.kind, &Runnable::kind);
  return found == runnables.end() ? nullptr : &*found;
}

void Checker::check_runnable(const Action& action) {
  const Runnable* own = runnable(device(action.device), action.model);
  FOLIOT_CHECK(own != nullptr);
  if (action.type != ActionType::kInfer) return;
  FOLIOT_CHECK(std::ranges::count(own->batch_sizes, action.batch_size) == 1);
  FOLIOT_CHECK(is_lane_interval(action.lanes, device(action.device).lane_count));
}

// ---- Targets ----

void Checker::on_target(ModelId model, const ModelTarget& target, TimePoint now) {
  targets_.at(model.value()) = target;
  ruled_out_.erase(model);
  note_ruled_out(model, now);
}

void Checker::set_held(Device& device, ModelId model, bool held) {
  if (model.value() >= device.held.size()) device.held.resize(model.value() + 1);
  device.held[model.value()] = held;
}

bool Checker::allows(const Device& device, ModelId model) const {
  const ModelTarget& target = targets_.at(model.value());
  const Runnable* own = runnable(device, model);
  return own != nullptr && own->batch_sizes.front() <= target.batch_most &&
         (target.kinds.empty() || std::ranges::count(target.kinds, device.kind) > 0);
}

uint32_t Checker::copies(ModelId model) const {
  return static_cast<uint32_t>(std::ranges::count_if(devices_, [&](const Device& device) {
    return device.state == DeviceState::kUp && model.value() < device.held.size() && device.held[model.value()];
  }));
}

bool Checker::ruled_out(ModelId model) const {
  if (copies(model) > targets_.at(model.value()).copies_most) return true;
  return std::ranges::any_of(devices_, [&](const Device& device) {
    return device.state == DeviceState::kUp && model.value() < device.held.size() && device.held[model.value()] &&
           !allows(device, model);
  });
}

void Checker::note_ruled_out(ModelId model, TimePoint now) {
  if (targets_.at(model.value()) == ModelTarget() || !ruled_out(model)) {
    ruled_out_.erase(model);
  } else {
    ruled_out_.try_emplace(model, now);
  }
}

void Checker::check_target(const Action& action) const {
  const ModelTarget& target = targets_.at(action.model.value());
  if (target == ModelTarget() || action.type == ActionType::kUnload) return;
  FOLIOT_CHECK(allows(devices_.at(action.device.value()), action.model));
  FOLIOT_CHECK(action.type != ActionType::kLoad || copies(action.model) < target.copies_most);
  FOLIOT_CHECK(action.type != ActionType::kInfer || action.batch_size <= target.batch_most);
}

void Checker::check_ruled_out(TimePoint now) const {
  for (const auto& [model, since] : ruled_out_) FOLIOT_CHECK(now - since <= options_.ruled_out_max);
}

// ---- Requests and actions ----

void Checker::on_request(const Request& request, TimePoint /*now*/) {
  ++requests_;
  const Turn turn{request.model, request.bucket, request.deadline, request.arrival, request.sequence};
  FOLIOT_CHECK(open_.insert(request.id, {turn, request.answer_by()}));
  if (Run* run = run_of_visit(request.id)) {
    FOLIOT_CHECK(request.answer_by() == run->answer_by);
    begin_visit(*run, *visit_slot(request.id));
  }
  FOLIOT_CHECK(waiting_.emplace(turn, 0).second);
}

void Checker::on_action(const Action& action, TimePoint now) {
  FOLIOT_CHECK(actions_.insert(action.id, 0));
  FOLIOT_CHECK(action.earliest <= action.latest && now <= action.latest);
  const DeviceState state = device(action.device).state;
  const bool goes_on = action.type == ActionType::kInfer && !action.range.begins();
  FOLIOT_CHECK(state == DeviceState::kUp || (state == DeviceState::kDraining && goes_on) ||
               (state != DeviceState::kLost && action.type == ActionType::kUnload));
  if (action.range.begins()) {
    for (const BatchRows::Row& row : action.rows) FOLIOT_CHECK(++infers_[row.request] <= options_.returns_max + 1);
    check_order(action);
  }
  check_runnable(action);
  if (action.type == ActionType::kInfer) check_context(action);
  if (action.range.begins()) check_target(action);  // what was begun before goes on
  check_ruled_out(now);
  if (action.type == ActionType::kInfer) return;
  set_held(device(action.device), action.model, action.type == ActionType::kLoad);
  if (action.type == ActionType::kUnload) return note_ruled_out(action.model, now);
  const auto& failed = device(action.device).failed_loads;
  const auto before = failed.find(action.model);
  FOLIOT_CHECK(before == failed.end() || now - before->second >= options_.load_back_off);
}

void Checker::check_context(const Action& infer) {
  std::vector<Context>& contexts = device(infer.device).contexts;
  FOLIOT_CHECK(infer.context < contexts.size() && infer.range.first < infer.range.last);
  Context& context = contexts[infer.context];
  if (infer.range.begins()) {
    FOLIOT_CHECK(!context.holder);
    if (!infer.range.ends()) {
      FOLIOT_CHECK(context.outstanding == 0);
      context.holder = infer.rows[0].request;
      unfinished_[*context.holder] = {infer.device, infer.context};
    }
  } else {
    FOLIOT_CHECK(context.holder == infer.rows[0].request && context.outstanding == 0);
    FOLIOT_CHECK(infer.range.first == context.next);
  }
  ++context.outstanding;
}

void Checker::context_over(const Action& infer, bool done) {
  Context& context = device(infer.device).contexts[infer.context];
  if (context.outstanding == 0) return;  // its device was lost
  --context.outstanding;
  context.next = infer.range.last;
  if (infer.range.whole() || (done && !infer.range.ends())) return;
  unfinished_.erase(*context.holder);
  context.holder.reset();
}

// Of each kind of equals the last one that is sent has overtaken what still waits before it.
void Checker::check_order(const Action& infer) {
  std::array<const Turn*, kBatchSizeMax> sent{};
  uint32_t rows = 0;
  for (const BatchRows::Row& row : infer.rows) {
    const Open* open = open_.find(row.request);
    FOLIOT_CHECK(open != nullptr && waiting_.erase(open->turn) == 1);
    sent[rows++] = &open->turn;
  }
  std::sort(sent.begin(), sent.begin() + rows, [](const Turn* a, const Turn* b) { return *a < *b; });
  for (uint32_t i = 0; i < rows; ++i) {
    if (i + 1 < rows && sent[i]->equal(*sent[i + 1])) continue;
    const Turn first_equal{sent[i]->model, sent[i]->bucket, sent[i]->deadline};
    for (auto waits = waiting_.lower_bound(first_equal); waits != waiting_.end() && waits->first < *sent[i]; ++waits) {
      FOLIOT_CHECK(++waits->second <= options_.overtaken_max);
    }
  }
}

void Checker::on_outcome(const Action& action, const Outcome& outcome, TimePoint now) {
  FOLIOT_CHECK(outcome.action == action.id && actions_.erase(action.id));
  FOLIOT_CHECK((outcome.status == OutcomeStatus::kLost) == (device(action.device).state == DeviceState::kLost));
  if (action.type == ActionType::kInfer) context_over(action, outcome.done());
  if (outcome.status == OutcomeStatus::kFailed) {
    ++failures_;
    if (action.type == ActionType::kLoad) device(action.device).failed_loads[action.model] = now;
  }
  if (!outcome.done()) {
    if (action.type != ActionType::kInfer && outcome.status != OutcomeStatus::kLost) {
      set_held(device(action.device), action.model, action.type == ActionType::kUnload);
      note_ruled_out(action.model, now);
    }
    const bool inputs_missing = outcome.status == OutcomeStatus::kTooLate && outcome.ready == TimePoint();
    for (const BatchRows::Row& row : action.rows) waits_again(row.request, action.device, inputs_missing, now);
    return;
  }
  for (uint32_t i = 0; i < action.rows.size(); ++i) {
    if (outcome.unfed_rows[i]) waits_again(action.rows[i].request, action.device, true, now);
  }
  FOLIOT_CHECK(outcome.start + options_.clock_error >= action.earliest && outcome.end >= outcome.start);
  FOLIOT_CHECK(outcome.start - options_.clock_error <= action.latest);
  switch (action.type) {
    case ActionType::kLoad:
      set_loaded(device(action.device), action.model, true);
      ++loads_;
      break;
    case ActionType::kUnload: set_loaded(device(action.device), action.model, false); break;
    case ActionType::kInfer: ++execs_; break;
  }
}

// Unless it is answered now, in its old place.
void Checker::waits_again(RequestId request, DeviceId from, bool inputs_missing, TimePoint now) {
  waiting_.emplace(open_.find(request)->turn, 0);
  if (inputs_missing && now < device(from).joined_at + options_.attachment_wait) --infers_[request];
}

// Each model is loaded and unloaded in turn, and all together fit.
void Checker::set_loaded(Device& device, ModelId model, bool loaded) {
  if (model.value() >= device.loaded.size()) device.loaded.resize(model.value() + 1);
  FOLIOT_CHECK(device.loaded[model.value()] != loaded);
  device.loaded[model.value()] = loaded;
  const Runnable* own = runnable(device, model);
  FOLIOT_CHECK(own != nullptr);
  const uint32_t pages = own->pages;
  FOLIOT_CHECK(loaded || device.pages >= pages);
  device.pages = loaded ? device.pages + pages : device.pages - pages;
  FOLIOT_CHECK(device.pages <= device.pages_total);
}

void Checker::on_completion(const Completion& completion, TimePoint /*now*/) {
  const Open* open = open_.find(completion.id);
  FOLIOT_CHECK(open != nullptr);
  waiting_.erase(open->turn);
  if (Run* run = run_of_visit(completion.id)) end_visit(*run, completion);
  if (const auto given_up = unfinished_.find(completion.id); given_up != unfinished_.end()) {
    FOLIOT_CHECK(!completion.served());
    const auto [own, context] = given_up->second;
    device(own).contexts[context].holder.reset();
    unfinished_.erase(given_up);
  }
  if (completion.served()) {
    FOLIOT_CHECK(completion.finished <= open->answer_by);
    ++served_;
  } else {
    ++refused_[static_cast<size_t>(completion.refusal)];
  }
  open_.erase(completion.id);
  infers_.erase(completion.id);
}

void Checker::on_device(const DeviceChange& change, TimePoint now) {
  Device& d = device(change.device);
  if (change.joined) {
    d.joined_at = now;
    d.kind = change.kind;
    d.lane_count = change.lane_count;
  }
  d.state = change.state;
  const bool anew = change.state == DeviceState::kLost || change.joined;
  if (anew) d.held.clear();
  for (const ModelId model : change.residents) set_held(d, model, true);
  for (uint32_t id = 0; id < targets_.size(); ++id) note_ruled_out(ModelId(id), now);
  if (!anew) return;
  std::erase_if(unfinished_, [&](const auto& entry) { return entry.second.first == change.device; });
  d.contexts.assign(change.joined ? change.context_count : d.contexts.size(), {});
  d.loaded.clear();
  d.failed_loads.clear();
  d.pages = 0;
  if (!change.joined) return;
  d.pages_total = std::numeric_limits<uint32_t>::max();  // until on_pages(), which follows
  for (const ModelId model : change.residents) set_loaded(d, model, true);
}

void Checker::on_pages(DeviceId id, uint32_t used, uint32_t total) {
  FOLIOT_CHECK(used <= total && device(id).pages <= total);
  device(id).pages_total = total;
}

void Checker::on_work(ExecutorKind executor, const Action& action, TimePoint start, TimePoint end) {
  FOLIOT_CHECK(end >= start);
  Device& d = device(action.device);
  const auto use = [&](TimePoint& busy_until) {
    FOLIOT_CHECK(start >= busy_until);
    busy_until = end;
  };
  if (executor == ExecutorKind::kExec) {
    for (uint32_t lane = action.lanes.first; lane < action.lanes.end(); ++lane) use(d.lanes_busy_until[lane]);
  } else {
    use(d.busy_until[static_cast<size_t>(executor)]);
  }
  if (executor == ExecutorKind::kLoad || executor == ExecutorKind::kExec) {
    FOLIOT_CHECK(start >= action.earliest && start <= action.latest);
  }
}

Checker::Run* Checker::run_of_visit(RequestId request) {
  return visit_slot(request) ? runs_.find(run_of(request)) : nullptr;
}

void Checker::on_run(const Request& request, const PipelineInfo* pipeline, TimePoint /*now*/) {
  FOLIOT_CHECK(runs_.insert(request.id, {.answer_by = request.answer_by(), .pipeline = pipeline}));
  if (pipeline != nullptr) slots_.try_emplace(pipeline->id, *pipeline);
}

void Checker::begin_visit(Run& run, uint32_t slot) {
  FOLIOT_CHECK(run.pipeline != nullptr);
  const StageSlots& slots = slots_.at(run.pipeline->id);
  const std::optional<StageSlots::Place> place = slots.find(slot);
  FOLIOT_CHECK(place && !run.made.test(slot));
  run.made.set(slot);
  ++run.visits;
  for (const std::vector<TensorSource>& sources : run.pipeline->stages[place->stage].inputs) {
    FOLIOT_CHECK(std::ranges::any_of(
        sources, [&](const TensorSource& source) { return !source.stage || is_over(run, *source.stage); }));
  }
  const auto& for_each = run.pipeline->stages[place->stage].for_each;
  if (!for_each) return;
  FOLIOT_CHECK(run.served.test(slots.first(for_each->stage)));
  FOLIOT_CHECK(static_cast<float>(place->element) < run.readings[for_each->stage].count);
}

bool Checker::is_over(const Run& run, uint32_t stage) const {
  const StageSlots& slots = slots_.at(run.pipeline->id);
  const auto& for_each = run.pipeline->stages[stage].for_each;
  if (!for_each) return run.served.test(slots.first(stage));
  if (!is_over(run, for_each->stage)) return false;
  const auto elements = static_cast<uint32_t>(run.readings[for_each->stage].count);
  for (uint32_t element = 0; element < elements; ++element) {
    if (!run.served.test(slots.first(stage) + element)) return false;
  }
  return true;
}

void Checker::end_visit(Run& run, const Completion& visit) {
  --run.visits;
  if (!visit.served()) return;
  const uint32_t slot = *visit_slot(visit.id);
  run.served.set(slot);
  const uint32_t stage = slots_.at(run.pipeline->id).at(slot).stage;
  run.readings[stage] = {visit.conditions, visit.count};
}

// What is visited follows from what was read of the stages before.
void Checker::check_visits(const Run& run) const {
  const StageSlots& slots = slots_.at(run.pipeline->id);
  StageSet visited;
  for (uint32_t stage = 0; stage < run.pipeline->stages.size(); ++stage) {
    const PipelineStage& own = run.pipeline->stages[stage];
    const auto holds = [&](const PipelineStage::Requirement& required) {
      return visited.test(required.stage) && (run.readings[required.stage].conditions >> required.condition & 1) != 0;
    };
    const auto is_there = [&](const TensorSource& source) { return !source.stage || visited.test(*source.stage); };
    const auto is_fed = [&](const std::vector<TensorSource>& sources) {
      return std::ranges::any_of(sources, is_there);
    };
    visited.set(stage, std::ranges::all_of(own.requires_all, holds) && std::ranges::all_of(own.inputs, is_fed) &&
                           (!own.for_each || visited.test(own.for_each->stage)));
    const float elements = own.for_each ? run.readings[own.for_each->stage].count : 1;
    for (uint32_t slot = slots.first(stage); slot < slots.first(stage) + slots.count(stage); ++slot) {
      const bool expected = visited.test(stage) && static_cast<float>(slots.at(slot).element) < elements;
      FOLIOT_CHECK(run.served.test(slot) == expected);
    }
  }
}

void Checker::on_run_over(const Completion& completion, TimePoint /*now*/) {
  const Run* run = runs_.find(completion.id);
  FOLIOT_CHECK(run != nullptr && run->visits == 0);
  if (completion.served()) {
    FOLIOT_CHECK(completion.finished <= run->answer_by);
    check_visits(*run);
  }
  runs_.erase(completion.id);
}

void Checker::check_finished() const {
  FOLIOT_CHECK(open_.empty() && runs_.empty() && actions_.empty() && waiting_.empty());
}

}  // namespace foliot
