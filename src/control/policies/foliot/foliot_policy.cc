#include "control/policies/foliot/foliot_policy.h"

#include <algorithm>
#include <span>

#include "foundation/base/bounded_array.h"

namespace foliot::foliot_policy {
namespace {

// Of the devices that could answer a request, so many are asked how soon.
constexpr uint32_t kDevicesLookedAtMax = 4;
// Limits of the work in one turn; the rest follows in the next one, at once, but after
// the events that have come meanwhile. So no decision waits long for others.
constexpr uint32_t kDeviceLooksPerTurn = 2;  // for a batch, on behalf of devices that have become free
constexpr uint32_t kModelLooksPerTurn = 2;   // for a device, on behalf of models
constexpr size_t kExpiredPerTurn = 16;
// What is unfinished is to have no less than this part of the device until its end.
constexpr double kShareOfUnfinished = 0.5;

}  // namespace

FoliotPolicy::FoliotPolicy(const Cluster& cluster, const FoliotOptions& options)
    : cluster_(cluster),
      options_(options),
      board_(cluster, options.lookahead),
      admission_(board_),
      parts_(cluster),
      selection_(board_, parts_),
      division_(board_),
      trials_(board_),
      best_effort_room_(board_),
      pool_(board_, options.consolidate),
      loads_(board_, pool_),
      keeper_(cluster, *this) {}

// ---- Facts ----

void FoliotPolicy::on_request(const Request& request, TimePoint now) {
  if (const auto holder = board_.model(request.model).holders.next(0)) {
    cluster_.durations().prefetch(DeviceId(*holder), request.model);
  }
  board_.note_arrival(request, now);
  loads_.on_request(request.model);
  pool_.on_request(request.model, now);
  // Behind a request that can still be met, this one can be, too. Where many wait, the answer
  // times of several devices would be most of what admitting a request costs.
  const bool behind_another = board_.waits_behind_another(request, now);
  const Duration shortest = behind_another ? Duration() : shortest_answer(request.model, request.bucket);
  if (!behind_another && now + shortest > request.deadline) {
    refused_.push_back({request.id, Refusal::kUnmeetable, now + shortest});
    return;
  }
  if (const std::optional<TimePoint> answer = admission_.turn_away(request, now)) {
    refused_.push_back({request.id, Refusal::kOverload, *answer});
    return;
  }
  board_.add(request);
  touch(request.model, now);
  if (behind_another) return;
  if (const ModelState& state = board_.model(request.model); state.queues.size() == 1) {
    if (state.queues[0].with_deadline() > 0) note_expiry(request.model, state.queues[0][0].deadline - shortest);
  } else {
    note_expiry(request.model);
  }
}

void FoliotPolicy::on_withdrawn(const Request& request, TimePoint /*now*/) {
  const auto same = [&](const Refused& other) { return other.id == request.id; };
  if (std::erase_if(refused_, same) == 0) board_.remove(request);
}

void FoliotPolicy::on_outcome(const Action& action, const Outcome& outcome, TimePoint now) {
  const uint32_t device = action.device.value();
  loads_.on_measured(action.model);
  keeper_.on_outcome(action, now);
  parts_.on_outcome(action, outcome, now);
  switch (action.type) {
    case ActionType::kInfer:
      busy_.emplace(cluster_.device(action.device).lane_available(now) - board_.lookahead(action.device), device);
      board_.exec_over(action.device, action.model, action.lanes.count);
      selection_.on_answered({action.model, action.bucket}, action.device, now);
      break;
    case ActionType::kLoad:
      loads_.on_load_over(action.device, now);
      board_.load_over(action.device, action.model);
      if (outcome.status == OutcomeStatus::kFailed && board_.absent().contains(action.model.value())) {
        loads_.on_load_failed(action.model);
      }
      if (free_.contains(device)) note_due(action.device, now);
      touch(action.model, now);
      break;
    case ActionType::kUnload: board_.unload_over(action.device, action.model); break;
  }
}

void FoliotPolicy::on_device_changed(DeviceId device, TimePoint now) {
  keeper_.on_device_changed();
  if (cluster_.device(device).state() == DeviceState::kLost) parts_.on_lost(device);
  update_device(device, now);
  if (parts_.may_resume(device) && free_.contains(device.value())) note_due(device, now);
}

void FoliotPolicy::on_target_changed(ModelId model, TimePoint now) {
  keeper_.on_target_changed(model);
  loads_.on_measured(model);
  loads_.on_target_changed();
  touch(model, now);
  note_expiry(model);
}

void FoliotPolicy::update_device(DeviceId device, TimePoint now) {
  loads_.on_device_changed(device, now);
  pool_.on_device_changed();
  for (const ModelId model : board_.on_device_changed(device)) {
    touch(model, now);
    note_expiry(model);
  }
}

void FoliotPolicy::on_model_added(const ModelInfo& model, TimePoint /*now*/) {
  board_.on_model_added(model);
  loads_.on_model_added(model.id);
}

void FoliotPolicy::on_model_removed(ModelId model, TimePoint /*now*/) {
  loads_.on_model_removed(model);
  pool_.on_model_removed(model);
  trials_.forget(model, board_.model(model).queues.size());
  board_.on_model_removed(model);
}

void FoliotPolicy::touch(ModelId model, TimePoint now) {
  ModelState& state = board_.model(model);
  if (std::exchange(state.touched, true)) return;
  touched_.push_back({model, now});
}

void FoliotPolicy::note_due(DeviceId device, TimePoint now) {
  if (is_due_.contains(device.value())) return;
  is_due_.insert(device.value());
  due_.push_back({device, now});
}

// ---- Decisions ----

TimePoint FoliotPolicy::plan(TimePoint now, Dispatcher& dispatcher) {
  free_devices(now);
  refuse_new(dispatcher);
  refuse_expired(now, dispatcher);
  run_batches(now, dispatcher);
  const TimePoint targets_wake = keeper_.plan(now, dispatcher);
  TimePoint wake = std::min(targets_wake, loads_.plan(now, dispatcher));
  if (!due_.empty() || !touched_.empty()) wake = now;
  if (!busy_.empty() && !board_.waiting().empty()) wake = std::min(wake, busy_.top().first);
  if (!spills_.empty()) wake = std::min(wake, spills_.top().first);
  if (!held_.empty()) wake = std::min(wake, held_.top().first);
  if (!expiries_.empty()) wake = std::min(wake, expiries_.top().first + Duration::microseconds(1));
  return std::max(wake, now + Duration::microseconds(1));
}

void FoliotPolicy::free_devices(TimePoint now) {
  for (; devices_ < cluster_.devices.size(); ++devices_) free_.insert(devices_);
  while (!busy_.empty() && busy_.top().first <= now) {
    const uint32_t device = busy_.top().second;
    busy_.pop();
    if (cluster_.devices[device].lane_available(now) - board_.lookahead(DeviceId(device)) > now) continue;
    free_.insert(device);
    note_due(DeviceId(device), now);
  }
}

void FoliotPolicy::run_batches(TimePoint now, Dispatcher& dispatcher) {
  pool_.refresh(now);
  for (; !spills_.empty() && spills_.top().first <= now; spills_.pop()) touch(ModelId(spills_.top().second), now);
  for (; !held_.empty() && held_.top().first <= now; held_.pop()) {
    const uint32_t device = held_.top().second;
    held_until_[device] = TimePoint::infinite_future();
    if (free_.contains(device)) note_due(DeviceId(device), now);
  }
  looks_left_ = kDeviceLooksPerTurn;
  size_t served = 0;
  for (; served < due_.size() && looks_left_ > 0; ++served) {
    const Listed<DeviceId> due = due_[served];
    is_due_.erase(due.what.value());
    serve_device(due, now, dispatcher);
  }
  due_.erase(due_.begin(), due_.begin() + static_cast<std::ptrdiff_t>(served));
  looks_left_ = kModelLooksPerTurn;
  served = 0;
  for (; served < touched_.size() && looks_left_ > 0; ++served)
    serve_model(Listed<ModelId>(touched_[served]), now, dispatcher);
  touched_.erase(touched_.begin(), touched_.begin() + static_cast<std::ptrdiff_t>(served));
}

void FoliotPolicy::serve_device(const Listed<DeviceId>& due, TimePoint now, Dispatcher& dispatcher) {
  const auto& [device, since] = due;
  if (!pool_.contains(device)) {
    board_.waiting().for_each_common(board_.loaded(device), [&](uint32_t model) { touch(ModelId(model), now); });
    return;
  }
  while (free_.contains(device.value())) {
    if (looks_left_ == 0) return note_due(device, now);
    if (!run_batch(device, since, now, dispatcher)) return;
  }
}

void FoliotPolicy::serve_model(const Listed<ModelId>& touched, TimePoint now, Dispatcher& dispatcher) {
  const auto& [model, since] = touched;
  ModelState& state = board_.model(model);
  state.touched = false;
  while (state.queued > 0) {
    const auto device = device_for(model, now);
    if (!device) break;
    if (looks_left_ == 0) return touch(model, now);
    if (!run_batch(*device, since, now, dispatcher)) break;
  }
  if (state.queued > 0 && board_.absent().contains(model.value())) loads_.on_cold(model, now);
}

std::optional<DeviceId> FoliotPolicy::device_for(ModelId id, TimePoint now) {
  const BitSet& holders = board_.model(id).holders;
  const auto first_free = first_in_time(id, now);
  if (!first_free) return std::nullopt;
  const DeviceId device(*first_free);
  if (pool_.contains(device) || !pool_.contains(DeviceId(*holders.next(0)))) return device;
  const TimePoint spill = spill_time(device, id);
  if (spill <= now) return device;
  if (!spill.is_infinite()) spills_.emplace(spill, id.value());
  return std::nullopt;
}

// The first free device that can answer the request that is due first, else the first
// that can answer one that is due later: some devices are farther away than others.
std::optional<uint32_t> FoliotPolicy::first_in_time(ModelId id, TimePoint now) const {
  const ModelState& state = board_.model(id);
  std::optional<uint32_t> later;
  for (auto device = state.holders.first_common(free_); device;
       device = state.holders.first_common(free_, *device + 1)) {
    const TimePoint start = cluster_.device(DeviceId(*device)).lane_available(now);
    for (uint16_t bucket = 0; bucket < state.queues.size(); ++bucket) {
      const RequestQueue& queue = state.queues[bucket];
      if (queue.size() > queue.with_deadline()) return device;
      if (queue.with_deadline() == 0) continue;
      const TimePoint answer = start + board_.answer_time(DeviceId(*device), id, BucketId(bucket), 0);
      if (answer <= queue[0].deadline) return device;
      if (!later && answer <= queue[queue.with_deadline() - 1].deadline) later = device;
    }
  }
  return later;
}

TimePoint FoliotPolicy::spill_time(DeviceId device, ModelId id) const {
  const ModelState& state = board_.model(id);
  const std::span<const uint32_t> sizes = cluster_.batch_sizes(device, id);
  TimePoint first = TimePoint::infinite_future();
  for (uint16_t bucket = 0; bucket < state.queues.size(); ++bucket) {
    const RequestQueue& queue = state.queues[bucket];
    const size_t rows = queue.with_deadline();
    if (rows == 0) continue;
    uint32_t index = 0;
    while (index + 1 < sizes.size() && sizes[index] < rows + 1) ++index;
    if (rows >= sizes.back()) return TimePoint();  // a full batch need not wait
    first = std::min(
        first, queue[0].deadline - board_.answer_time(device, id, BucketId(bucket), index) - board_.lookahead(device));
  }
  return first;
}

bool FoliotPolicy::run_batch(DeviceId device, TimePoint since, TimePoint now, Dispatcher& dispatcher) {
  --looks_left_;
  const DeviceModel& facts = cluster_.device(device);
  // As many as it takes: an outcome will list it again.
  if (facts.infers_outstanding() >= cluster_.infers_outstanding_max) return false;
  if (parts_.overdue(device, now)) return resume(device, now, dispatcher);
  give_up_late(device, now, dispatcher);
  if (share_is_due(device, Duration(), now)) return parts_.may_resume(device) && resume(device, now, dispatcher);
  const Duration best_effort_max = board_.best_effort_waits() ? best_effort_room_.longest(device, now) : Duration();
  const bool some_missed = admission_.overloaded(device, now);
  const bool divides = division_.divides(device, now);
  if (!divides && fill_lanes(device, now, some_missed, dispatcher)) return true;
  LaneChoice lanes(board_, device, now, divides, some_missed);
  board_.set_divides(device, divides);
  selection_.set_crowded(admission_.crowded(device, now));
  std::optional<Batch> batch;
  do {
    batch = selection_.choose(device, lanes.lanes(), now, lanes.start(), best_effort_max);
  } while (!batch && selection_.held_until().is_infinite() && lanes.widen());
  if (!batch) look_again(device, selection_.held_until());
  if (parts_.unfinished(device) != nullptr && (!batch || goes_after_unfinished(device, *batch, now))) {
    return parts_.may_resume(device) && resume(device, now, dispatcher);
  }
  if (!batch) return false;
  // Where nothing that has a deadline is expected, nothing has to wait.
  if (!divides && batch->head.offline && best_effort_max < Duration::max()) {
    if (const std::optional<Batch> smaller = parts_.divide(device, *batch)) {
      batch = smaller;
      batch->in_parts = true;
    }
  }
  LaneInterval taken = lanes.fewest_for(*batch);
  if (!some_missed) taken = trials_.lanes_for(device, *batch, taken, now, lanes.start(), divides);
  if (!send(device, *batch, taken, now, dispatcher)) return false;
  // Where looks come later than an EXEC takes, one batch a look does not keep devices busy.
  const bool late = now - since > cluster_.durations().exec({device, batch->model, batch->bucket, batch->batch_index});
  if (late && !divides && facts.infers_outstanding() < cluster_.infers_outstanding_max) {
    const std::optional<Batch> next = selection_.next_after(*batch, device, lanes.start());
    if (next) send(device, *next, lanes.lanes(), now, dispatcher);
  }
  note_busy(device, now);
  return true;
}

bool FoliotPolicy::fill_lanes(DeviceId device, TimePoint now, bool some_missed, Dispatcher& dispatcher) {
  const DeviceModel& facts = cluster_.device(device);
  const TimePoint all_free = facts.exec_available(now);
  bool some_are_free = false;  // before all are
  for (uint32_t lane = 0; lane < facts.lane_count(); ++lane) {
    some_are_free = some_are_free || facts.exec_available(now, {lane, 1}) < all_free;
  }
  if (!some_are_free) return false;
  LaneChoice lanes(board_, device, now, /*divides=*/true, some_missed);
  if (lanes.start() >= all_free) return false;
  board_.set_divides(device, true);
  const std::optional<Batch> batch = selection_.choose(device, lanes.lanes(), now, lanes.start(), Duration());
  if (!batch || batch->in_parts) return false;
  const uint32_t width = width_index(lanes.lanes().count, facts.lane_count());
  const Duration exec = cluster_.durations().exec({device, batch->model, batch->bucket, batch->batch_index, width});
  if (lanes.start() + exec > all_free) return false;
  return send(device, *batch, lanes.lanes(), now, dispatcher);
}

// So it gets its part of the device until it ends, and what others need of the rest is theirs.
bool FoliotPolicy::share_is_due(DeviceId device, Duration after, TimePoint now) const {
  const BatchParts::Unfinished* const own = parts_.unfinished(device);
  if (own == nullptr || own->offline()) return false;
  const TimePoint start = cluster_.device(device).exec_available(now) + after;
  return start + parts_.left(device).scaled(1 / kShareOfUnfinished) >= own->end_by;
}

bool FoliotPolicy::goes_after_unfinished(DeviceId device, const Batch& batch, TimePoint now) const {
  if (batch.head.offline) return true;
  const ExecShape shape{device, batch.model, batch.bucket, batch.batch_index};
  return share_is_due(device, cluster_.durations().exec(shape), now);
}

void FoliotPolicy::give_up_late(DeviceId device, TimePoint now, Dispatcher& dispatcher) {
  if (!parts_.may_resume(device) || parts_.unfinished(device)->offline()) return;
  const TimePoint end = cluster_.device(device).exec_available(now) + parts_.left(device);
  if (end > parts_.unfinished(device)->end_by + cluster_.margin(device)) parts_.abandon(device, end, dispatcher);
}

bool FoliotPolicy::resume(DeviceId device, TimePoint now, Dispatcher& dispatcher) {
  if (parts_.resume(device, now, dispatcher) != Verdict::kAccepted) return false;
  note_busy(device, now);
  return true;
}

void FoliotPolicy::note_busy(DeviceId device, TimePoint now) {
  const TimePoint next = cluster_.device(device).lane_available(now) - board_.lookahead(device);
  if (next <= now) return;
  free_.erase(device.value());
  busy_.emplace(next, device.value());
}

bool FoliotPolicy::send(DeviceId device, const Batch& batch, LaneInterval lanes, TimePoint now,
                        Dispatcher& dispatcher) {
  const RequestQueue& queue = board_.model(batch.model).queues[batch.bucket.value()];
  BoundedArray<RequestId, kBatchSizeMax> requests;
  for (uint32_t i = 0; i < batch.rows; ++i) requests.add(queue[batch.first + i].id);
  const uint32_t batch_size = cluster_.batch_sizes(device, batch.model)[batch.batch_index];
  const Window window{now, batch.latest + cluster_.slack(device)};
  const Verdict verdict =
      batch.in_parts ? parts_.begin(device, batch, requests, window, dispatcher)
                     : dispatcher.infer(device, batch.model, batch.bucket, batch_size, lanes, requests, window);
  if (verdict != Verdict::kAccepted) return false;
  board_.erase(batch.model, batch.bucket, batch.first, batch.rows);
  if (!batch.in_parts) selection_.on_sent(batch, device);
  if (cluster_.device(device).lane_count() > 1) {
    board_.exec_sent(device, batch.model, batch.bucket, batch.batch_index, batch.rows, now);
    if (!batch.in_parts) trials_.sent(device, batch, lanes);
  }
  return true;
}

void FoliotPolicy::look_again(DeviceId device, TimePoint when) {
  if (when.is_infinite()) return;
  if (device.value() >= held_until_.size()) held_until_.resize(device.value() + 1, TimePoint::infinite_future());
  if (when >= held_until_[device.value()]) return;
  held_until_[device.value()] = when;
  held_.emplace(when, device.value());
}

// ---- Refusals ----

void FoliotPolicy::refuse_new(Dispatcher& dispatcher) {
  for (const Refused& refused : refused_) dispatcher.refuse(refused.id, refused.reason, refused.answer);
  refused_.clear();
}

// A model that is nowhere has to be loaded first. Of several devices that could
// answer, some are looked at: one of them may be in trouble.
Duration FoliotPolicy::shortest_answer(ModelId model, BucketId bucket) const {
  const BitSet& holders = board_.model(model).holders;
  Duration shortest = Duration::max();
  uint32_t looked = 0;
  for (auto device = holders.next(0); device && looked < kDevicesLookedAtMax;
       device = holders.next(*device + 1), ++looked) {
    shortest = std::min(shortest, cluster_.device(DeviceId(*device)).delivery() +
                                      board_.answer_time(DeviceId(*device), model, bucket, 0));
  }
  if (looked > 0) return shortest;
  const bool absent = board_.absent().contains(model.value());
  const std::optional<DeviceId> first = cluster_.first_able(model);
  for (uint32_t i = first ? first->value() : ~0u; i < cluster_.devices.size() && looked < kDevicesLookedAtMax; ++i) {
    if (!cluster_.may_place(DeviceId(i), model)) continue;
    ++looked;
    const Duration load = absent ? cluster_.durations().load(DeviceId(i), model) : Duration();
    const Duration delivery = cluster_.device(DeviceId(i)).delivery();
    shortest = std::min(shortest, delivery + board_.answer_time(DeviceId(i), model, bucket, 0) + load);
  }
  return shortest;
}

TimePoint FoliotPolicy::expiry(ModelId id) const {
  const ModelState& state = board_.model(id);
  TimePoint first = TimePoint::infinite_future();
  for (uint16_t bucket = 0; bucket < state.queues.size(); ++bucket) {
    const RequestQueue& queue = state.queues[bucket];
    if (queue.with_deadline() == 0 || cluster_.devices.empty()) continue;
    first = std::min(first, queue[0].deadline - shortest_answer(id, BucketId(bucket)));
  }
  return first;
}

void FoliotPolicy::note_expiry(ModelId id, TimePoint first) {
  ModelState& state = board_.model(id);
  if (first >= state.expiry) return;
  state.expiry = first;
  expiries_.emplace(first, id.value());
}

void FoliotPolicy::refuse_expired(TimePoint now, Dispatcher& dispatcher) {
  size_t left = kExpiredPerTurn;
  while (left > 0 && !expiries_.empty() && expiries_.top().first < now) {
    const auto [when, id] = expiries_.top();
    expiries_.pop();
    const ModelId model(id);
    if (!cluster_.has_model(model) || board_.model(model).expiry != when) continue;
    board_.model(model).expiry = TimePoint::infinite_future();
    left -= refuse_expired(model, left, now, dispatcher);
    note_expiry(model);
  }
}

size_t FoliotPolicy::refuse_expired(ModelId id, size_t count_max, TimePoint now, Dispatcher& dispatcher) {
  ModelState& state = board_.model(id);
  size_t refused = 0;
  for (uint16_t bucket = 0; bucket < state.queues.size(); ++bucket) {
    const RequestQueue& queue = state.queues[bucket];
    const Duration duration = shortest_answer(id, BucketId(bucket));
    const size_t expired = std::min(queue.first_due_from(now + duration), count_max - refused);
    for (size_t i = 0; i < expired; ++i) dispatcher.refuse(queue[i].id, Refusal::kExpired, now + duration);
    if (expired == 0) continue;
    board_.erase(id, BucketId(bucket), 0, expired);
    admission_.note_missed(id, now);
    refused += expired;
  }
  return refused;
}

std::unique_ptr<Policy> make_foliot_policy(const Cluster& cluster, const FoliotOptions& options) {
  return std::make_unique<FoliotPolicy>(cluster, options);
}

}  // namespace foliot::foliot_policy
