#include "control/controller/controller.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "control/controller/completions.h"
#include "control/controller/task_router.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

// On behalf of a request that was refused, so many devices are asked whether it was for
// nothing; the next request asks the next ones.
constexpr uint32_t kDevicesDoubtedMax = 16;
// As often as an expected duration is doubted.
constexpr Duration kTrialInterval = Duration::milliseconds(500);

}  // namespace

Controller::Controller(const ControllerOptions& options, const PolicyFactory& make_policy, ActionSink& actions,
                       CompletionSink& completions)
    : options_(options),
      actions_(actions),
      completions_(completions),
      cluster_(options.make_durations ? Cluster(options.make_durations()) : Cluster()),
      fair_share_(cluster_),
      ability_(cluster_),
      requests_(options.queued_max, fair_share_),
      check_(cluster_, requests_),
      runs_(cluster_, *this, options.pipeline_slack) {
  cluster_.infers_outstanding_max = options.infers_outstanding_max;
  cluster_.loads_outstanding_max = options.loads_outstanding_max;
  cluster_.load_back_off = LoadBackOff(options.load_back_off);
  policy_ = make_policy(cluster_);
  if (options.health) failure_detector_.emplace(*options.health, cluster_);
}

Controller::~Controller() = default;

// ---- Devices ----

DeviceId Controller::add_device(uint32_t page_count, TimePoint now, std::string_view kind, uint32_t lane_count,
                                uint32_t context_count) {
  const DeviceId id(static_cast<uint32_t>(cluster_.devices.size()));
  join_device(id, page_count, {}, now, kind, lane_count, context_count);
  return id;
}

void Controller::join_device(DeviceId id, uint32_t page_count, std::span<const ModelId> residents, TimePoint now,
                             std::string_view kind, uint32_t lane_count, uint32_t context_count) {
  FOLIOT_CHECK(id.value() <= cluster_.devices.size());
  if (id.value() == cluster_.devices.size()) {
    cluster_.add_device(cluster_.intern_kind(kind), 0).lose();
    cluster_.timings.emplace_back();
  }
  turn_now_ = now;
  DeviceModel& device = cluster_.devices[id.value()];
  FOLIOT_CHECK(cluster_.kind_name(device.kind()) == kind);
  uint32_t pages = 0;
  for (const ModelId model : residents) {
    FOLIOT_CHECK(cluster_.runnable(id, model) != nullptr);
    pages += cluster_.pages(id, model);
  }
  device.join(page_count, lane_count, residents, pages, now, context_count);
  cluster_.durations().set_lane_count(id, lane_count);
  cluster_.timings[id.value()] = DeviceTiming(options_.timing);
  timing_changed(id, now);
  cluster_.load_back_off.forget_device(id);
  if (failure_detector_) failure_detector_->on_join(id, now);
  cluster_.count_copies(device, true);
  for (const ModelId model : residents) put_forbidden_aside(id, model);
  device_changed({.device = id,
                  .joined = true,
                  .residents = residents,
                  .kind = kind,
                  .lane_count = lane_count,
                  .context_count = context_count},
                 now);
  for (const ModelId model : residents) {
    unload_set_aside(id, model);
    continue_removal(model);
  }
}

void Controller::drain_device(DeviceId device, TimePoint now) {
  if (cluster_.device(device).state() == DeviceState::kLost) return;
  set_device_state(device, DeviceState::kDraining, DeviceTrouble::kLeft, now);
}

void Controller::resume_device(DeviceId device, TimePoint now) {
  if (cluster_.device(device).state() != DeviceState::kDraining) return;
  set_device_state(device, DeviceState::kUp, DeviceTrouble::kNone, now);
}

bool Controller::idle(DeviceId device) const { return actions_outstanding_.of_device(device).empty(); }

void Controller::set_device_state(DeviceId id, DeviceState state, DeviceTrouble trouble, TimePoint now) {
  DeviceModel& device = cluster_.devices[id.value()];
  if (device.state() == state) return;
  if (device.up()) cluster_.count_copies(device, false);
  device.set_state(state);
  if (device.up()) cluster_.count_copies(device, true);
  device_changed({.device = id, .state = state, .trouble = trouble}, now);
}

void Controller::lose_device(DeviceId id, DeviceTrouble trouble, TimePoint now) {
  DeviceModel& device = cluster_.devices[id.value()];
  if (device.state() == DeviceState::kLost) return;
  turn_now_ = now;
  if (device.up()) cluster_.count_copies(device, false);
  const std::vector<ModelId> held = device.loaded();
  // Batches that go on when their next INFER is sent have no action that is lost.
  std::vector<Action> unfinished;
  for (ContextIndex context = 0; context < device.contexts().count(); ++context) {
    if (const Action* last = device.contexts().unfinished(context)) unfinished.push_back(*last);
  }
  device.lose();
  if (failure_detector_) failure_detector_->on_lost(id, trouble, now);
  cluster_.durations().forget_device(id);
  device_changed({.device = id, .state = DeviceState::kLost, .trouble = trouble}, now);

  for (const ActionId action_id : actions_outstanding_.of_device(id)) {
    const Action& action = *actions_outstanding_.find(action_id);
    on_outcome({.action = action_id,
                .type = action.type,
                .device = id,
                .model = action.model,
                .status = OutcomeStatus::kLost,
                .start = now,
                .end = now,
                .output_end = now},
               now);
  }
  for (const Action& action : unfinished) refuse_rows(action, Refusal::kWorkerLost, TimePoint(), now);
  for (const ModelId model : held) continue_removal(model);
  ability_.on_lost(id, now);
  look_for_stranded_after(now);
  runs_.on_device_lost(id, now);
}

void Controller::on_message(DeviceId device, TimePoint now) {
  if (failure_detector_ && cluster_.device(device).state() != DeviceState::kLost)
    failure_detector_->on_message(device, now);
}

void Controller::check_devices(TimePoint now) {
  for (const FailureDetector::Finding& finding : failure_detector_->check(now)) {
    if (finding.state == DeviceState::kLost) {
      lose_device(finding.device, finding.trouble, now);
    } else {
      set_device_state(finding.device, finding.state, finding.trouble, now);
    }
  }
}

void Controller::device_changed(const DeviceChange& change, TimePoint now) {
  for (Observer* observer : observers_) observer->on_device(change, now);
  if (tasks_ != nullptr) tasks_->on_devices_changed();
  policy_->on_device_changed(change.device, now);
  observe_pages(change.device);
}

// ---- Models ----

void Controller::add_model(std::shared_ptr<const ModelInfo> model, TimePoint now) {
  const uint32_t id = model->id.value();
  FOLIOT_CHECK(id <= cluster_.models.size() && !cluster_.has_model(model->id));
  cluster_.load_back_off.forget_model(model->id);
  fair_share_.on_model_added(*model);
  cluster_.add_model(std::move(model));
  for (Observer* observer : observers_) observer->on_model(*cluster_.models[id]);
  policy_->on_model_added(*cluster_.models[id], now);
}

void Controller::extend_model(std::shared_ptr<const ModelInfo> model) {
  const uint32_t id = model->id.value();
  FOLIOT_CHECK(cluster_.is_offered(model->id));
  for (const Runnable& before : cluster_.model(model->id).runnables) {
    const Runnable* after = model->find(before.kind);
    FOLIOT_CHECK(after != nullptr);
    FOLIOT_CHECK(std::ranges::mismatch(before.batch_sizes, after->batch_sizes).in1 == before.batch_sizes.end());
  }
  cluster_.extend_model(std::move(model));
  if (tasks_ != nullptr) tasks_->on_model_changed(ModelId(id));
  for (Observer* observer : observers_) observer->on_model_extended(*cluster_.models[id]);
  // What its target asks for may be possible now.
  const ModelId extended(id);
  if (cluster_.target(extended) != ModelTarget()) policy_->on_target_changed(extended, turn_now_);
}

void Controller::remove_model(ModelId model, TimePoint now) {
  if (!cluster_.is_offered(model)) return;
  turn_now_ = now;
  if (cluster_.target(model) != ModelTarget()) set_target(model, ModelTarget(), now);
  cluster_.withdraw_model(model);
  if (tasks_ != nullptr) tasks_->on_model_changed(model);
  if (failure_detector_) failure_detector_->forget_model(model);
  withdraw_all([&](const Request& request) { return request.model == model; }, Refusal::kUnloaded, now);
  policy_->on_model_removed(model, now);
  continue_removal(model);
}

bool Controller::model_gone(ModelId model) const { return !cluster_.has_model(model); }

// Goes on with a removal as far as what is outstanding allows; called again with
// every outcome of the model.
void Controller::continue_removal(ModelId model) {
  if (!cluster_.has_model(model) || cluster_.is_offered(model)) return;
  for (const DeviceModel& device : cluster_.devices) {
    if (check_.unload(device.id(), model) == Verdict::kAccepted) send_unload(device.id(), model);
  }
  bool outstanding = false;
  actions_outstanding_.for_each([&](const Action& action) { outstanding = outstanding || action.model == model; });
  const bool placed = std::any_of(cluster_.devices.begin(), cluster_.devices.end(),
                                  [&](const DeviceModel& device) { return device.held(model) != Residency::kAbsent; });
  if (outstanding || placed) return;
  cluster_.remove_model(model);
  for (Observer* observer : observers_) observer->on_model_removed(model, turn_now_);
}

// ---- Targets ----

Status Controller::set_targets(const Targets& targets, TimePoint now) {
  FOLIOT_RETURN_IF_ERROR(check_targets(cluster_, targets));
  turn_now_ = now;
  for (uint32_t id = 0; id < cluster_.models.size(); ++id) {
    const ModelId model(id);
    if (!cluster_.is_offered(model) || targets.of(model) == cluster_.target(model)) continue;
    set_target(model, targets.of(model), now);
  }
  return Status();
}

// What no device may run any more is refused while policies still see where it was to run.
void Controller::set_target(ModelId model, const ModelTarget& target, TimePoint now) {
  if (!cluster_.has_able(model, target)) {
    withdraw_all([&](const Request& request) { return request.model == model; }, Refusal::kUnloaded, now);
  }
  cluster_.set_target(model, target);
  if (target.copies_least > 0) look_for_stranded_after(now);
  if (tasks_ != nullptr) tasks_->on_model_changed(model);
  for (Observer* observer : observers_) observer->on_target(model, target, now);
  for (const DeviceModel& device : cluster_.devices) {
    if (cluster_.may_place(device.id(), model) || device.held(model) == Residency::kAbsent) continue;
    put_forbidden_aside(device.id(), model);
    policy_->on_device_changed(device.id(), now);
    unload_set_aside(device.id(), model);
  }
  policy_->on_target_changed(model, now);
}

void Controller::put_forbidden_aside(DeviceId device, ModelId model) {
  if (cluster_.may_place(device, model) || cluster_.device(device).set_aside(model)) return;
  put_aside(device, model);
}

void Controller::put_aside(DeviceId id, ModelId model) {
  DeviceModel& device = cluster_.devices[id.value()];
  if (device.up() && device.held(model) == Residency::kLoaded) --cluster_.copies[model.value()];
  device.put_aside(model);
  if (tasks_ != nullptr) tasks_->on_residents_changed(model);
}

// ---- Pipelines and tasks ----

void Controller::add_pipeline(std::shared_ptr<const PipelineInfo> pipeline) {
  for (Observer* observer : observers_) observer->on_pipeline(*pipeline);
  runs_.add(std::move(pipeline));
}

void Controller::remove_pipeline(PipelineId pipeline) {
  if (runs_.info(pipeline) == nullptr) return;
  runs_.remove(pipeline);
  for (Observer* observer : observers_) observer->on_pipeline_removed(pipeline);
}

void Controller::add_task(std::shared_ptr<const TaskInfo> task) {
  if (tasks_ == nullptr) {
    tasks_ = std::make_unique<TaskRouter>(cluster_, options_.tasks);
    for (const Request& request : requests_.waiting([](const Request&) { return true; })) tasks_->on_waiting(request);
  }
  for (Observer* observer : observers_) observer->on_task(*task);
  tasks_->add(std::move(task));
}

void Controller::remove_task(ServedTaskId task) {
  if (tasks_ == nullptr || !tasks_->has(task)) return;
  tasks_->remove(task);
  for (Observer* observer : observers_) observer->on_task_removed(task);
}

void Controller::end_call(RequestId call) {
  if (tasks_ != nullptr) tasks_->end_call(call);
}

// ---- Requests and turns ----

void Controller::on_request(const Request& request, TimePoint now) {
  requests_.prefetch(request.id);
  if (request.task != ServedTaskId()) return route(request, now);
  if (request.pipeline == PipelineId()) return admit(request, now);
  for (Observer* observer : observers_) observer->on_run(request, runs_.info(request.pipeline), now);
  runs_.begin(request, now);
}

void Controller::run_over(const Completion& completion, TimePoint now) {
  for (Observer* observer : observers_) observer->on_run_over(completion, now);
  completions_.complete(completion);
}

void Controller::route(const Request& asked, TimePoint now) {
  const bool known = tasks_ != nullptr && tasks_->serves(asked);
  const TaskRouter::Route route = known ? tasks_->route(asked, now) : TaskRouter::Route();
  Request request = asked;
  request.model = route.model;
  if (route.chosen) return admit(request, now);
  request.sequence = next_sequence_++;
  for (Observer* observer : observers_) observer->on_request(request, now);
  Completion refusal = refusal_of(request, known ? Refusal::kUnmeetable : Refusal::kUnloaded, TimePoint(), now);
  refusal.detail = route.detail;
  refusal.unmet = route.unmet;
  complete(refusal, now);
}

void Controller::admit(const Request& asked, TimePoint now) {
  RequestTable::Entry entry{.request = asked, .admitted = now};
  Request& request = entry.request;
  request.sequence = next_sequence_++;
  for (Observer* observer : observers_) observer->on_request(request, now);
  if (draining_) return refuse_new(request, Refusal::kDraining, TimePoint(), now);
  if (!cluster_.is_offered(request.model) || !cluster_.has_bucket(request.model, request.bucket)) {
    return refuse_new(request, Refusal::kUnloaded, TimePoint(), now);
  }
  if (!cluster_.devices.empty() && !cluster_.first_able(request.model)) {
    return refuse_new(request, Refusal::kUnloaded, TimePoint(), now, ability_.unable_detail(request.model));
  }
  if (!ability_.has_able_device(request.model) || !ability_.could_serve(request.model, now))
    return refuse_new(request, Refusal::kWorkerLost, TimePoint(), now);
  if (is_crowded_out(request.model)) {
    return refuse_new(request, Refusal::kUnloaded, TimePoint(), now, ability_.crowded_detail(request.model));
  }
  if (const auto earliest = fair_share_.turn_away(request, now)) {
    return refuse_new(request, Refusal::kOverShare, *earliest, now);
  }
  entry.cold_start = cluster_.copies[request.model.value()] == 0;
  if (entry.cold_start && cluster_.requires_copies()) look_for_stranded_after(now);
  if (request.optional && !request.best_effort()) put_off(entry, now);
  if (!request.best_effort()) reserve_output(entry, now);
  if (!requests_.make_room(entry)) {
    return refuse_new(request, Refusal::kOverload, TimePoint(), now, queue_detail(requests_.waiting_by_class()));
  }
  for (const QueueShares::Entry& evicted : requests_.evicted()) {
    withdraw(RequestId(evicted.id), Refusal::kOverload, now);
  }
  requests_.enqueue(requests_.add(entry));
  if (tasks_ != nullptr) tasks_->on_waiting(request);
  policy_->on_request(request, now);
}

// Policies plan each EXEC to end before its deadline by what it is late by at worst, as do a careful
// expected duration. To a later deadline they plan what is in time more likely than not, and, once in
// a while, where a device has nothing else to do, anything: that shows what the expectation is worth.
// When an answer is late stays the same.
void Controller::put_off(RequestTable::Entry& entry, TimePoint now) {
  Request& request = entry.request;
  next_trials_.resize(cluster_.models.size());
  TimePoint& next_trial = next_trials_[request.model.value()];
  Duration least = Duration::max();
  const size_t devices = std::min<size_t>(cluster_.devices.size(), kDevicesDoubtedMax);
  for (size_t i = 0; i < devices; ++i) {
    const DeviceModel& device = cluster_.devices[i];
    if (device.residency(request.model) != Residency::kLoaded) continue;
    const DeviceTiming& timing = cluster_.timings[i];
    least = std::min(least, std::max(Duration(), timing.margin() - timing.usual_lateness()));
    if (device.infers_outstanding() > 0 || now < next_trial) continue;
    const Duration all = cluster_.durations().exec({device.id(), request.model, request.bucket, 0}) + timing.margin();
    if (now + all <= request.deadline + least) continue;
    next_trial = now + kTrialInterval;
    least = all;
    break;
  }
  if (least == Duration::max()) return;
  entry.put_off = least;
  request.deadline += least;
  request.reserve -= least;
}

// What OUTPUT takes for the model's results, if that is long: half of the time at most.
void Controller::reserve_output(RequestTable::Entry& entry, TimePoint now) const {
  Request& request = entry.request;
  Duration least = Duration::max();
  for (const DeviceModel& device :
       std::span(cluster_.devices).first(std::min<size_t>(cluster_.devices.size(), kDevicesDoubtedMax))) {
    if (device.residency(request.model) == Residency::kLoaded)
      least = std::min(least, device.output_reserve(request.model));
  }
  if (least == Duration::max()) return;
  entry.output = std::max(Duration(), std::min(least, (request.deadline - now) / 2));
  request.deadline = request.deadline - entry.output;
  request.reserve += entry.output;
}

// What is refused for what OUTPUT took is not measured again.
void Controller::doubt_output(const RequestTable::Entry& refused) {
  if (refused.output == Duration()) return;
  const Request& request = refused.request;
  const Duration time = request.deadline + refused.output - refused.put_off - refused.admitted;
  for (DeviceModel& device :
       std::span(cluster_.devices).first(std::min<size_t>(cluster_.devices.size(), kDevicesDoubtedMax))) {
    if (device.residency(request.model) != Residency::kLoaded) continue;
    if (time >= cluster_.durations().exec({device.id(), request.model, request.bucket, 0}))
      device.doubt_output(request.model, turn_now_);
  }
}

void Controller::on_cancel(RequestId id, Refusal reason, TimePoint now) {
  runs_.cancel(id, reason, now);
  withdraw(id, reason, now);
}

void Controller::withdraw(RequestId id, Refusal reason, TimePoint now) {
  const RequestTable::Entry* found = requests_.find_waiting(id);
  if (found == nullptr) return;
  policy_->on_withdrawn(found->request, now);
  complete_refused(id, reason, TimePoint(), now);
}

void Controller::drain(TimePoint now) {
  draining_ = true;
  withdraw_all([](const Request&) { return true; }, Refusal::kDraining, now);
}

TimePoint Controller::turn(TimePoint now) {
  turn_now_ = now;
  if (failure_detector_) check_devices(now);
  if (now >= cluster_.load_back_off.next_end()) end_back_offs(now);
  if (now >= next_stranded_) refuse_stranded(now);
  TimePoint planned;
  do {
    runs_.advance(now);
    planned = policy_->plan(now, *this);
  } while (runs_.advance(now));
  const TimePoint wake = std::min({planned, cluster_.load_back_off.next_end(), next_stranded_});
  return failure_detector_ ? std::min(wake, failure_detector_->next_check()) : wake;
}

// ---- Proposals ----

Verdict Controller::reject(Verdict verdict) {
  ++proposals_rejected_;
  return verdict;
}

Verdict Controller::load(DeviceId device, ModelId model, Window window) {
  if (const Verdict verdict = check_.load(device, model, window, turn_now_); verdict != Verdict::kAccepted)
    return reject(verdict);
  const Action action{.id = ActionId(next_action_++),
                      .type = ActionType::kLoad,
                      .device = device,
                      .model = model,
                      .earliest = window.earliest,
                      .latest = window.latest,
                      .expected = cluster_.durations().load(device, model)};
  cluster_.devices[device.value()].sent_load(action.id, model, cluster_.pages(device, model), window.earliest,
                                             action.expected, turn_now_);
  ++cluster_.held[model.value()];
  send(action);
  observe_pages(device);
  return Verdict::kAccepted;
}

Verdict Controller::unload(DeviceId device, ModelId model) {
  if (const Verdict verdict = check_.unload(device, model); verdict != Verdict::kAccepted) return reject(verdict);
  if (!cluster_.may_evict(model)) return reject(Verdict::kAgainstTargets);
  send_unload(device, model);
  return Verdict::kAccepted;
}

Verdict Controller::retire(DeviceId device, ModelId model) {
  if (const Verdict verdict = check_.retire(device, model); verdict != Verdict::kAccepted) return reject(verdict);
  put_aside(device, model);
  unload_set_aside(device, model);
  return Verdict::kAccepted;
}

// An UNLOAD may begin at any time: it takes none, and nothing waits for it but
// the LOADs behind it.
void Controller::send_unload(DeviceId device, ModelId model) {
  const Action action{.id = ActionId(next_action_++),
                      .type = ActionType::kUnload,
                      .device = device,
                      .model = model,
                      .earliest = turn_now_,
                      .latest = TimePoint::infinite_future(),
                      .expected = Duration()};
  DeviceModel& d = cluster_.devices[device.value()];
  if (d.residency(model) == Residency::kLoaded) --cluster_.copies[model.value()];
  if (d.up()) --cluster_.held[model.value()];
  d.sent_unload(model, cluster_.pages(device, model));
  send(action);
  observe_pages(device);
}

Verdict Controller::infer(DeviceId device, ModelId model, BucketId bucket, uint32_t batch_size, LaneInterval lanes,
                          std::span<const RequestId> requests, Window window) {
  const Verdict verdict =
      check_.infer(device, model, bucket, batch_size, {.lanes = lanes}, requests, window, turn_now_);
  if (verdict != Verdict::kAccepted) return reject(verdict);
  const DeviceModel& own = cluster_.device(device);
  const ExecShape shape{.device = device,
                        .model = model,
                        .bucket = bucket,
                        .batch_index = cluster_.batch_index(device, model, batch_size),
                        .width_index = width_index(lanes.count, own.lane_count())};
  Action action;  // without an initializer list, which would fill the room for rows with zeros
  begin_infer(action, device, model, bucket, batch_size, window, requests);
  action.expected = cluster_.durations().exec(shape);
  action.lanes = lanes;
  send_infer(action);
  return Verdict::kAccepted;
}

Verdict Controller::begin(DeviceId device, ModelId model, BucketId bucket, uint32_t batch_size, const ExecPart& part,
                          Duration expected, std::span<const RequestId> requests, Window window) {
  const Verdict verdict = check_.infer(device, model, bucket, batch_size, part, requests, window, turn_now_);
  if (verdict != Verdict::kAccepted) return reject(verdict);
  Action action;
  begin_infer(action, device, model, bucket, batch_size, window, requests);
  action.expected = expected;
  action.lanes = part.lanes;
  action.range = part.range;
  action.context = part.context;
  // All lanes are its own, and nothing else runs.
  action.in_group = !part.range.whole() || part.lanes != cluster_.device(device).all_lanes();
  send_infer(action);
  return Verdict::kAccepted;
}

Verdict Controller::resume(DeviceId device, ContextIndex context, uint32_t last, LaneInterval lanes, Duration expected,
                           Window window) {
  const Verdict verdict = check_.resume(device, context, last, lanes, window, turn_now_);
  if (verdict != Verdict::kAccepted) return reject(verdict);
  Action action = *cluster_.device(device).contexts().unfinished(context);
  const uint32_t first = action.range.last;
  action.id = ActionId(next_action_++);
  action.earliest = window.earliest;
  action.latest = window.latest;
  action.expected = expected;
  action.lanes = lanes;
  action.range = {first, last};
  action.in_group = true;
  send_infer(action);
  return Verdict::kAccepted;
}

Verdict Controller::abandon(DeviceId device, ContextIndex context, Refusal reason, TimePoint earliest_completion) {
  if (const Verdict verdict = check_.abandon(device, context); verdict != Verdict::kAccepted) return reject(verdict);
  const Action action = *cluster_.device(device).contexts().unfinished(context);
  cluster_.devices[device.value()].abandon(context);
  refuse_rows(action, reason, earliest_completion, turn_now_);
  unload_set_aside(device, action.model);
  continue_removal(action.model);
  return Verdict::kAccepted;
}

void Controller::begin_infer(Action& action, DeviceId device, ModelId model, BucketId bucket, uint32_t batch_size,
                             Window window, std::span<const RequestId> requests) {
  action.id = ActionId(next_action_++);
  action.device = device;
  action.model = model;
  action.earliest = window.earliest;
  action.latest = window.latest;
  action.bucket = bucket;
  action.batch_size = batch_size;
  for (const RequestId id : requests) {
    RequestTable::Entry& row = requests_.at(id);
    requests_.dequeue(row);
    if (tasks_ != nullptr) tasks_->on_taken(row.request);
    action.rows.add({id, row.request.payload, row.request.input, row.request.consumers});
  }
}

void Controller::send_infer(const Action& action) {
  DeviceModel& own = cluster_.devices[action.device.value()];
  std::optional<Duration> time;
  if (action.range.begins()) {
    fair_share_.on_sent(action);
    const RequestTable::Entry& first = requests_.at(action.rows[0].request);
    if (!first.request.best_effort()) time = first.request.deadline - first.put_off - first.admitted;
  }
  own.contexts().sent(action);
  own.sent_infer(action.id, action.model, action.lanes, action.earliest, action.expected, turn_now_,
                 !action.range.begins(), action.range.ends() ? action.rows.size() : 0);
  cluster_.timings[action.device.value()].on_sent(action.id, own.exec_available(turn_now_, action.lanes), time,
                                                  turn_now_);
  send(action);
}

// Of a batch that is given up.
void Controller::refuse_rows(const Action& action, Refusal reason, TimePoint earliest_completion, TimePoint now) {
  for (const BatchRows::Row& row : action.rows) {
    complete(refusal_of(requests_.take(row.request).request, reason, earliest_completion, now), now);
  }
}

Verdict Controller::refuse(RequestId request, Refusal reason, TimePoint earliest_completion) {
  const RequestTable::Entry* found = requests_.find_waiting(request);
  if (found == nullptr) return reject(Verdict::kUnknown);
  if (reason == Refusal::kExpired || reason == Refusal::kUnmeetable) {
    doubt_if_idle(*found);
    doubt_output(*found);
  }
  complete_refused(request, reason, earliest_completion, turn_now_);
  return Verdict::kAccepted;
}

// What expires while a device that holds its model has nothing to do was only
// ever kept back by its estimate.
void Controller::doubt_if_idle(const RequestTable::Entry& refused) {
  const Request& request = refused.request;
  if (cluster_.copies[request.model.value()] == 0) return;
  // What it had to be met in: when a policy refuses it is the policy's affair.
  const Duration time = request.deadline - refused.put_off - refused.admitted;
  bool idle = false;
  const auto devices = static_cast<uint32_t>(cluster_.devices.size());
  for (uint32_t i = 0; i < std::min(devices, kDevicesDoubtedMax); ++i) {
    next_doubted_ = next_doubted_ + 1 < devices ? next_doubted_ + 1 : 0;
    const DeviceModel& device = cluster_.devices[next_doubted_];
    if (device.infers_outstanding() > 0 || device.residency(request.model) != Residency::kLoaded) continue;
    idle = true;
    // Not what a doubt has made of it.
    const Duration seed = cluster_.runnable(device.id(), request.model)->seed_exec[request.bucket.value()][0];
    const Duration exec = std::max(seed, cluster_.durations().exec({device.id(), request.model, request.bucket, 0}));
    if (cluster_.timings[device.id().value()].on_refusal(request.arrival, time, exec, turn_now_)) {
      timing_changed(device.id(), turn_now_);
    }
  }
  if (idle) cluster_.durations().doubt(request.model, request.bucket, turn_now_);
}

void Controller::timing_changed(DeviceId id, TimePoint now) {
  const DeviceTiming& own = cluster_.timings[id.value()];
  cluster_.devices[id.value()].set_link({.delivery = own.delivery(), .report = own.report()});
  cluster_.margin_least = Duration::max();
  for (const DeviceModel& device : cluster_.devices) {
    if (device.state() == DeviceState::kLost) continue;
    cluster_.margin_least = std::min(cluster_.margin_least, cluster_.margin(device.id()));
  }
  for (Observer* observer : observers_) observer->on_timing(id, own.margin(), own.lookahead(), now);
}

void Controller::send(const Action& action) {
  actions_outstanding_.add(action);
  if (tasks_ != nullptr && action.type != ActionType::kInfer) tasks_->on_residents_changed(action.model);
  for (Observer* observer : observers_) observer->on_action(action, turn_now_);
  actions_.send(action);
}

// ---- Outcomes ----

void Controller::on_outcome(const Outcome& outcome, TimePoint now) {
  const Action action = actions_outstanding_.take(outcome.action);
  if (action.type == ActionType::kInfer) {
    cluster_.durations().prefetch(action.device, action.model);
    for (const BatchRows::Row& row : action.rows) requests_.prefetch(row.request);
  }
  turn_now_ = now;
  if (outcome.status != OutcomeStatus::kLost) {
    on_message(action.device, now);
    if (failure_detector_) failure_detector_->on_report(action.device, std::max(outcome.end, outcome.output_end), now);
  }
  const bool failed = outcome.status == OutcomeStatus::kFailed;
  if (failure_detector_ && (outcome.done() || failed) && action.type != ActionType::kUnload) {
    failure_detector_->on_result(action.device, action.type, action.model, failed, now);
  }
  for (Observer* observer : observers_) observer->on_outcome(action, outcome, now);

  const Duration apart = measure_output(action, outcome);
  if (cluster_.timings[action.device.value()].on_outcome(action, outcome, now, apart))
    timing_changed(action.device, now);
  // A lost device has forgotten it all already.
  bool unfinished = false;
  if (outcome.status != OutcomeStatus::kLost) {
    switch (action.type) {
      case ActionType::kLoad: load_over(action, outcome); break;
      case ActionType::kUnload: unload_over(action, outcome); break;
      case ActionType::kInfer: unfinished = exec_over(action, outcome); break;
    }
  }
  if (tasks_ != nullptr && action.type != ActionType::kInfer) tasks_->on_residents_changed(action.model);
  if (failed && action.type == ActionType::kLoad) cluster_.load_back_off.on_failure(action.device, action.model, now);
  policy_->on_outcome(action, outcome, now);
  if (failed && action.type == ActionType::kInfer) exec_failed(action, now);
  if (action.type != ActionType::kUnload) unload_set_aside(action.device, action.model);
  if (action.type == ActionType::kInfer && !unfinished) {
    const bool in_parts = action.in_group && !action.range.begins() && parts_were_alone(action);
    infer_over(action, in_parts && outcome.done() ? of_all_parts(action, outcome) : outcome, now);
  }
  if (failed && action.type == ActionType::kLoad) load_failed(action, now);
  if (action.type != ActionType::kInfer) observe_pages(action.device);
  continue_removal(action.model);
}

void Controller::load_over(const Action& action, const Outcome& outcome) {
  cluster_.devices[action.device.value()].load_over(
      action.id, action.model, cluster_.pages(action.device, action.model), outcome.done(), outcome.end);
  const DeviceModel& device = cluster_.device(action.device);
  if (!outcome.done()) {
    if (device.up()) --cluster_.held[action.model.value()];
    return;
  }
  if (device.up() && !device.set_aside(action.model)) ++cluster_.copies[action.model.value()];
  cluster_.durations().record_load(action.device, action.model, outcome.duration);
}

// What no device holds and none may load (its package is damaged everywhere, say) will
// not be served for a while: its requests are refused at once.
void Controller::load_failed(const Action& action, TimePoint now) {
  if (ability_.could_serve(action.model, now)) return;
  withdraw_all([&](const Request& request) { return request.model == action.model; }, Refusal::kWorkerLost, now);
}

// A copy of a model that fails is not used again where another device could serve the
// model: it is unloaded, and loaded again when its back-off is over.
void Controller::exec_failed(const Action& action, TimePoint now) {
  const DeviceModel& own = cluster_.device(action.device);
  if (own.held(action.model) != Residency::kLoaded || own.set_aside(action.model)) return;
  if (!ability_.could_serve_elsewhere(own.id(), action.model, now)) return;
  put_aside(own.id(), action.model);
  cluster_.load_back_off.on_failure(own.id(), action.model, now);
  policy_->on_device_changed(own.id(), now);
}

// Once nothing that was sent needs it any more.
void Controller::unload_set_aside(DeviceId device, ModelId model) {
  if (!cluster_.device(device).set_aside(model)) return;
  if (check_.unload(device, model) == Verdict::kAccepted) send_unload(device, model);
}

void Controller::end_back_offs(TimePoint now) {
  for (const DeviceId device : cluster_.load_back_off.take_ended(now)) policy_->on_device_changed(device, now);
}

void Controller::unload_over(const Action& action, const Outcome& outcome) {
  if (outcome.done()) return;
  DeviceModel& device = cluster_.devices[action.device.value()];
  device.unload_refused(action.model, cluster_.pages(action.device, action.model));
  if (device.up()) {
    ++cluster_.copies[action.model.value()];
    ++cluster_.held[action.model.value()];
  }
  put_forbidden_aside(action.device, action.model);
}

// Returns what of the outcome's time is in its requests' reserve.
Duration Controller::measure_output(const Action& action, const Outcome& outcome) {
  if (action.type != ActionType::kInfer || !outcome.done() || !action.range.ends()) return Duration();
  DeviceModel& device = cluster_.devices[action.device.value()];
  // A worker whose figures are wrong is not to keep its device from work.
  const Duration whole =
      std::clamp(outcome.output_end - outcome.end, Duration(), std::max(Duration(), turn_now_ - outcome.end));
  device.measured_output(action.model, std::clamp(outcome.output_duration, Duration(), whole) / action.rows.size(),
                         whole, turn_now_);
  return device.output_reserve(action.model) > Duration() ? whole : Duration();
}

bool Controller::parts_were_alone(const Action& last) const {
  const DeviceModel& device = cluster_.device(last.device);
  return device.contexts().lanes(last.context) == device.lane_count();
}

// What its rows are answered with says of the EXEC when its first part began, and how long all took together.
Outcome Controller::of_all_parts(const Action& action, Outcome outcome) const {
  const Contexts& contexts = cluster_.device(action.device).contexts();
  outcome.start = contexts.started(action.context);
  outcome.duration = contexts.took(action.context);
  return outcome;
}

bool Controller::exec_over(const Action& action, const Outcome& outcome) {
  DeviceModel& device = cluster_.devices[action.device.value()];
  const bool unfinished = device.contexts().over(action, outcome.done(), outcome.start, outcome.duration);
  device.infer_over(action.id, action.model, outcome.end, unfinished, std::min(outcome.output_end, turn_now_));
  // One that failed on some rows has computed others alone.
  if (outcome.done() && outcome.failed_rows.none()) record_exec(action, outcome);
  return unfinished;
}

void Controller::record_exec(const Action& action, const Outcome& outcome) {
  if (!cluster_.device(action.device).set_aside(action.model)) {
    cluster_.load_back_off.on_success(action.device, action.model);
  }
  const uint32_t lane_count = cluster_.device(action.device).lane_count();
  Duration took = outcome.duration;
  if (action.in_group) {
    if (failure_detector_) failure_detector_->on_exec(action.device, action.expected, outcome.duration, outcome.end);
    if (!action.range.ends() || !parts_were_alone(action)) return;
    took = cluster_.device(action.device).contexts().took(action.context);
  }
  const uint32_t size = cluster_.batch_index(action.device, action.model, action.batch_size);
  const uint32_t width = width_index(action.lanes.count, lane_count);
  cluster_.durations().record_exec({action.device, action.model, action.bucket, size, width}, took);
  // The part of the device that it took, for so long.
  fair_share_.on_exec(action, took * action.lanes.count / lane_count);
  if (tasks_ != nullptr) tasks_->on_exec(action, took, turn_now_);
  if (!failure_detector_ || action.in_group) return;
  const Duration on_all_lanes = cluster_.runnable(action.device, action.model)->seed_exec[action.bucket.value()][size];
  const Duration seed = on_all_lanes * lane_count / action.lanes.count;
  failure_detector_->on_exec(action.device, seed, outcome.duration, outcome.end);
}

void Controller::infer_over(const Action& action, const Outcome& outcome, TimePoint now) {
  for (uint32_t i = 0; i < action.rows.size(); ++i) {
    const bool by_model = outcome.status == OutcomeStatus::kModelError || outcome.failed_rows[i];
    by_model ? refuse_failed(action.rows[i].request, now) : row_over(action, outcome, i, now);
  }
}

// By the model's own code, which would fail on it again.
void Controller::refuse_failed(RequestId id, TimePoint now) {
  complete(refusal_of(requests_.take(id).request, Refusal::kModelError, TimePoint(), now), now);
}

void Controller::row_over(const Action& action, const Outcome& outcome, uint32_t index, TimePoint now) {
  const RequestId id = action.rows[index].request;
  if (!outcome.done() || outcome.unfed_rows[index]) {
    RequestTable::Entry& entry = requests_.at(id);
    if (perhaps_unattached(outcome, now)) ++entry.returns_uncounted;
    return give_back(entry, outcome.done() ? OutcomeStatus::kFailed : outcome.status, now);
  }
  complete(answer_of(requests_.take(id), action, outcome, index, now), now);
}

// The worker refused the action that carried this request, failed, or was lost: it may
// be tried again while there is time, but not forever.
void Controller::give_back(RequestTable::Entry& entry, OutcomeStatus status, TimePoint now) {
  const Request request = entry.request;
  const bool lost = status == OutcomeStatus::kLost || status == OutcomeStatus::kFailed;
  const bool removed = !cluster_.is_offered(request.model) || !cluster_.first_able(request.model);
  const bool in_time = lost ? ability_.still_meetable(request, now) : now < request.deadline;
  const bool again = entry.returns < options_.returns_max + entry.returns_uncounted;
  if (!draining_ && !removed && again && in_time && ability_.could_serve(request.model, now)) {
    requests_.enqueue_again(entry);
    if (tasks_ != nullptr) tasks_->on_waiting(request);
    return policy_->on_request(request, now);
  }
  const Refusal reason = draining_         ? Refusal::kDraining
                         : removed         ? Refusal::kUnloaded
                         : in_time || lost ? Refusal::kWorkerLost
                                           : Refusal::kExpired;
  complete(refusal_of(requests_.take(request.id).request, reason, TimePoint(), now), now);
}

bool Controller::perhaps_unattached(const Outcome& outcome, TimePoint now) const {
  const bool inputs_missing =
      outcome.done() || (outcome.status == OutcomeStatus::kTooLate && outcome.ready == TimePoint());
  return inputs_missing && now < cluster_.device(outcome.device).joined_at() + options_.attachment_wait;
}

// ---- Requests ----

void Controller::complete_refused(RequestId id, Refusal reason, TimePoint earliest_completion, TimePoint now) {
  requests_.dequeue(requests_.at(id));
  const Request request = requests_.take(id).request;
  Completion refusal = refusal_of(request, reason, earliest_completion, now);
  if (reason == Refusal::kOverload) refusal.detail = queue_detail(requests_.waiting_by_class());
  if (reason == Refusal::kUnloaded && cluster_.is_offered(request.model) && is_crowded_out(request.model)) {
    refusal.detail = ability_.crowded_detail(request.model);
  }
  if (tasks_ != nullptr) {
    tasks_->on_taken(request);
    if (reason == Refusal::kUnmeetable && request.task != ServedTaskId()) {
      refusal.detail = tasks_->unmeetable_detail(request);
    }
  }
  complete(refusal, now);
}

void Controller::complete(const Completion& completion, TimePoint now) {
  for (Observer* observer : observers_) observer->on_completion(completion, now);
  runs_.is_visit(completion.id) ? runs_.visit_over(completion) : completions_.complete(completion);
}

void Controller::refuse_new(const Request& request, Refusal reason, TimePoint earliest_completion, TimePoint now,
                            const std::string& detail) {
  Completion refusal = refusal_of(request, reason, earliest_completion, now);
  refusal.detail = detail;
  complete(refusal, now);
}

// In the order of admission, so that the same events give the same completions.
void Controller::withdraw_all(const std::function<bool(const Request&)>& which, Refusal reason, TimePoint now) {
  for (const Request& request : requests_.waiting(which)) {
    policy_->on_withdrawn(request, now);
    complete_refused(request.id, reason, TimePoint(), now);
  }
}

void Controller::look_for_stranded_after(TimePoint now) {
  next_stranded_ = std::min(next_stranded_, now + options_.lost_devices_wait);
}

bool Controller::is_crowded_out(ModelId model) const {
  return model.value() < crowded_out_.size() && crowded_out_[model.value()] && ability_.crowded_out(model);
}

// What targets crowd out may become so at any LOAD, so it is looked for again while requests wait. It may be so in
// passing, while copies are moved: so it is refused if it was so at the last look, too.
void Controller::refuse_stranded(TimePoint now) {
  next_stranded_ = TimePoint::infinite_future();
  std::vector<bool> stranded(cluster_.models.size());
  std::vector<bool> crowded(cluster_.models.size());
  for (uint32_t id = 0; id < stranded.size(); ++id) {
    if (!cluster_.has_model(ModelId(id))) continue;
    const TimePoint until = ability_.lost_since(ModelId(id)) + options_.lost_devices_wait;
    stranded[id] = now >= until;
    if (!stranded[id]) next_stranded_ = std::min(next_stranded_, until);
    crowded[id] = is_crowded_out(ModelId(id));
  }
  withdraw_all([&](const Request& request) { return stranded[request.model.value()]; }, Refusal::kWorkerLost, now);
  withdraw_all([&](const Request& request) { return crowded[request.model.value()]; }, Refusal::kUnloaded, now);
  crowded_out_.resize(cluster_.models.size());
  for (uint32_t id = 0; id < crowded_out_.size(); ++id) {
    crowded_out_[id] = cluster_.has_model(ModelId(id)) && ability_.crowded_out(ModelId(id));
  }
  if (cluster_.requires_copies() && queued() > 0) look_for_stranded_after(now);
}

void Controller::observe_pages(DeviceId id) {
  const DeviceModel& device = cluster_.device(id);
  for (Observer* observer : observers_) {
    observer->on_pages(id, device.pages_used(), device.pages_total());
  }
}

}  // namespace foliot
