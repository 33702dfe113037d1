#include "control/policies/clockwork/clockwork_policy.h"

#include <algorithm>
#include <span>

#include "foundation/base/bounded_array.h"

namespace foliot::clockwork {
namespace {

// Brings what stands for a thing in an ordered set into agreement with `next`.
template <typename Key>
void update_alarm(std::set<std::pair<TimePoint, Key>>& alarms, std::optional<TimePoint>& slot,
                  std::optional<TimePoint> next, Key key) {
  if (slot == next) return;
  if (slot) alarms.erase({*slot, key});
  if (next) alarms.insert({*next, key});
  slot = next;
}

}  // namespace

ClockworkPolicy::ClockworkPolicy(const Cluster& cluster, const ClockworkOptions& options)
    : cluster_(cluster),
      options_(options),
      residents_(cluster),
      loads_(cluster, residents_, options.lookahead),
      keeper_(cluster, *this) {}

std::set<ClockworkPolicy::Strategy>& ClockworkPolicy::strategies(DeviceId device) {
  if (device.value() >= strategies_.size()) strategies_.resize(device.value() + 1);
  return strategies_[device.value()];
}

Duration ClockworkPolicy::exec(DeviceId device, QueueKey key, uint32_t batch_index) const {
  return cluster_.durations().exec({device, key.model, key.bucket, batch_index});
}

Duration ClockworkPolicy::lookahead(DeviceId device) const {
  return std::max(options_.lookahead, cluster_.lookahead(device));
}

Duration ClockworkPolicy::fastest(QueueKey key) {
  std::optional<Fastest>& known = queue(key).fastest;
  const uint64_t revision = cluster_.durations().revision(key.model);
  if (known && known->revision == revision) return known->duration + cluster_.least_margin();
  known = {Duration::max(), {}, revision};
  for (const DeviceModel& device : cluster_.devices) {
    if (!cluster_.may_place(device.id(), key.model)) continue;
    const Duration duration = exec(device.id(), key, 0);
    if (duration < known->duration) known = {duration, device.id(), revision};
  }
  return known->duration + cluster_.least_margin();
}

void ClockworkPolicy::note_measured(DeviceId device, QueueKey key) {
  if (key.bucket.value() >= models_[key.model.value()].queues.size()) return;  // it was removed
  std::optional<Fastest>& known = queue(key).fastest;
  if (!known) return;
  const Duration duration = exec(device, key, 0);
  if (duration <= known->duration) {
    known->duration = duration;
    known->device = device;
  } else if (device == known->device) {
    known.reset();
  }
}

// ---- Facts ----

void ClockworkPolicy::on_request(const Request& request, TimePoint now) {
  const QueueKey key{request.model, request.bucket};
  QueueState& state = queue(key);
  state.requests.add(request);
  const bool at_the_end = state.requests.size() > 1 && state.requests[state.requests.size() - 1].id == request.id;
  if (at_the_end && state.placed_on == residents_.holders(request.model)) {
    fill_slots(key, now);
  } else {
    update_queue(key, now);
  }
  update_demand(request.model, now);
}

void ClockworkPolicy::on_withdrawn(const Request& request, TimePoint now) {
  const QueueKey key{request.model, request.bucket};
  queue(key).requests.remove(request);
  update_queue(key, now);
  update_demand(request.model, now);
}

// The model may have come or gone, and its estimates may have changed.
void ClockworkPolicy::on_outcome(const Action& action, const Outcome& /*outcome*/, TimePoint now) {
  residents_.on_outcome(action);
  loads_.on_outcome(action);
  keeper_.on_outcome(action, now);
  agenda_.changed(action.device);
  if (action.type == ActionType::kInfer) note_measured(action.device, {action.model, action.bucket});
  update_model(action.model, now);
}

void ClockworkPolicy::on_device_changed(DeviceId device, TimePoint now) {
  keeper_.on_device_changed();
  update_device(device, now);
}

// Other batch sizes may be run now, on other devices.
void ClockworkPolicy::on_target_changed(ModelId model, TimePoint now) {
  keeper_.on_target_changed(model);
  for (QueueState& state : models_[model.value()].queues) {
    clear_slots(state);
    state.fastest.reset();
  }
  update_model(model, now);
}

void ClockworkPolicy::update_device(DeviceId device, TimePoint now) {
  loads_.on_device_changed(device);
  agenda_.changed(device);
  for (const ModelId model : residents_.on_device_changed(device)) update_model(model, now);
}

void ClockworkPolicy::on_model_added(const ModelInfo& model, TimePoint /*now*/) {
  if (model.id.value() >= models_.size()) models_.resize(model.id.value() + 1);
  models_[model.id.value()].queues.assign(model.buckets.size(), QueueState());
}

void ClockworkPolicy::on_model_removed(ModelId model, TimePoint now) {
  update_model(model, now);
  models_[model.value()].queues.clear();
}

// ---- What follows from the facts ----

void ClockworkPolicy::update_model(ModelId model, TimePoint now) {
  for (uint16_t bucket = 0; bucket < models_[model.value()].queues.size(); ++bucket) {
    update_queue({model, BucketId(bucket)}, now);
  }
  update_demand(model, now);
}

void ClockworkPolicy::update_queue(QueueKey key, TimePoint now) {
  QueueState& state = queue(key);
  const std::vector<DeviceId>& holders = residents_.holders(key.model);
  if (state.placed_on != holders) {
    clear_slots(state);
    state.placed_on = holders;
  }
  update_expiry(key);
  if (state.requests.empty() && state.slots_filled == 0) return;
  for (const DeviceId device : holders) {
    const auto batch_sizes = static_cast<uint32_t>(cluster_.batch_sizes(device, key.model).size());
    for (uint32_t b = 0; b < batch_sizes; ++b) update_strategy(device, key, b, now);
    if (!state.requests.empty()) agenda_.work_for(device);
  }
}

void ClockworkPolicy::clear_slots(QueueState& state) {
  for (const DeviceId device : state.placed_on) {
    if (device.value() >= state.slots.size()) continue;
    for (std::optional<Strategy>& slot : state.slots[device.value()]) fill_slot(device, state, slot, std::nullopt);
  }
}

// A request that joins a queue at its end may fill a batch, and changes no strategy that
// stands.
void ClockworkPolicy::fill_slots(QueueKey key, TimePoint now) {
  QueueState& state = queue(key);
  for (const DeviceId device : state.placed_on) {
    const Slots& slots = state.slots[device.value()];
    for (uint32_t b = 0; b < slots.size(); ++b) {
      if (!slots[b]) update_strategy(device, key, b, now);
    }
    agenda_.work_for(device);
  }
}

// Brings the one strategy of a queue, batch size and device into agreement with
// the queue as it would be at `start`.
void ClockworkPolicy::update_strategy(DeviceId device, QueueKey key, uint32_t batch_index, TimePoint start) {
  QueueState& state = queue(key);
  if (device.value() >= state.slots.size()) state.slots.resize(device.value() + 1);
  const std::span<const uint32_t> sizes = cluster_.batch_sizes(device, key.model);
  Slots& slots = state.slots[device.value()];
  slots.resize(sizes.size());
  std::optional<Strategy>& slot = slots[batch_index];

  std::optional<Strategy> next;
  if (state.requests.size() >= sizes[batch_index]) {
    const Duration duration = exec(device, key, batch_index);
    const size_t first = state.requests.first_due_from(start + duration + cluster_.margin(device));
    if (state.requests.size() - first >= sizes[batch_index]) {
      const RequestQueue::Entry& head = state.requests[first];
      next = Strategy{head.deadline - duration, head.place, key, batch_index};
    }
  }
  fill_slot(device, state, slot, next);
}

void ClockworkPolicy::fill_slot(DeviceId device, QueueState& state, std::optional<Strategy>& slot,
                                const std::optional<Strategy>& next) {
  if (slot == next) return;
  if (slot) strategies(device).erase(*slot);
  if (next) strategies(device).insert(*next);
  state.slots_filled += (next ? 1 : 0) - (slot ? 1 : 0);
  slot = next;
}

void ClockworkPolicy::update_expiry(QueueKey key) {
  QueueState& state = queue(key);
  std::optional<TimePoint> next;
  if (!state.requests.empty() && !state.requests[0].deadline.is_infinite())
    next = state.requests[0].deadline - fastest(key);
  update_alarm(expiries_, state.expiry, next, key);
}

void ClockworkPolicy::update_demand(ModelId model, TimePoint now) {
  ModelState& state = models_[model.value()];
  Duration work;
  std::optional<TimePoint> crossing;
  for (uint16_t bucket = 0; bucket < state.queues.size(); ++bucket) {
    const RequestQueue& queue = state.queues[bucket].requests;
    if (queue.empty()) continue;
    const std::optional<DeviceId> any_device = cluster_.first_able(model);
    if (!any_device) continue;
    const Duration one_row = exec(*any_device, {model, BucketId(bucket)}, 0);
    const Duration cold = cluster_.durations().load(*any_device, model) + one_row + cluster_.least_margin();
    const size_t first = queue.first_due_from(now + cold);
    if (first == queue.size()) continue;
    work += one_row * static_cast<int64_t>(queue.size() - first);
    const TimePoint helped_until = queue[first].deadline - cold;
    if (!helped_until.is_infinite()) crossing = std::min(crossing.value_or(helped_until), helped_until);
  }
  update_alarm(crossings_, state.crossing, crossing, model);
  loads_.set_demand(model, work);
}

// ---- Decisions ----

// INFERs first: what was loaded is given to do before room is made for the next.
TimePoint ClockworkPolicy::plan(TimePoint now, Dispatcher& dispatcher) {
  refuse_expired(now, dispatcher);
  while (const std::optional<DeviceId> device = agenda_.next(now)) serve(*device, now, dispatcher);
  while (!crossings_.empty() && crossings_.begin()->first < now) update_demand(crossings_.begin()->second, now);
  const TimePoint targets_wake = keeper_.plan(now, dispatcher);
  TimePoint wake = std::min({targets_wake, loads_.plan(now, dispatcher), agenda_.wake()});
  if (!expiries_.empty()) wake = std::min(wake, expiries_.begin()->first + Duration::microseconds(1));
  return wake;
}

void ClockworkPolicy::refuse_expired(TimePoint now, Dispatcher& dispatcher) {
  while (!expiries_.empty() && expiries_.begin()->first < now) {
    const QueueKey key = expiries_.begin()->second;
    QueueState& state = queue(key);
    const Duration duration = fastest(key);
    const size_t expired = state.requests.first_due_from(now + duration);
    for (size_t i = 0; i < expired; ++i) dispatcher.refuse(state.requests[i].id, Refusal::kExpired, now + duration);
    state.requests.erase(0, expired);
    update_queue(key, now);
    update_demand(key.model, now);
  }
}

void ClockworkPolicy::serve(DeviceId id, TimePoint now, Dispatcher& dispatcher) {
  const DeviceModel& device = cluster_.device(id);
  while (device.exec_available(now) < now + lookahead(id)) {
    // As many as it takes: an outcome will list it again.
    if (device.infers_outstanding() >= cluster_.infers_outstanding_max) {
      return agenda_.busy(id, TimePoint::infinite_future());
    }
    if (!plan_infer(id, now, dispatcher)) return;
  }
  agenda_.busy(id, device.exec_available(now) - lookahead(id));
}

bool ClockworkPolicy::plan_infer(DeviceId device, TimePoint now, Dispatcher& dispatcher) {
  const TimePoint start = cluster_.device(device).exec_available(now);
  const Duration margin = cluster_.margin(device);
  std::set<Strategy>& queue = strategies(device);
  while (!queue.empty()) {
    const Strategy strategy = *queue.begin();
    if (cluster_.device(device).residency(strategy.queue.model) != Residency::kLoaded) {
      update_queue(strategy.queue, now);  // it was evicted
    } else if (strategy.latest - margin < start) {
      // The head can no longer be met in a batch of this size; the next one might.
      update_strategy(device, strategy.queue, strategy.batch_index, start);
    } else {
      return send_batch(device, strategy, start, now, dispatcher);
    }
  }
  return false;
}

bool ClockworkPolicy::send_batch(DeviceId device, const Strategy& strategy, TimePoint start, TimePoint now,
                                 Dispatcher& dispatcher) {
  const QueueKey key = strategy.queue;
  const std::span<const uint32_t> sizes = cluster_.batch_sizes(device, key.model);
  QueueState& state = queue(key);
  uint32_t batch_index = strategy.batch_index;
  const Duration margin = cluster_.margin(device);
  const TimePoint deadline = strategy.latest + exec(device, key, batch_index);
  const size_t first = state.requests.first_due_from(deadline);
  const size_t available = state.requests.size() - first;
  FOLIOT_CHECK(available >= sizes[batch_index]);
  while (batch_index + 1 < sizes.size() && available >= sizes[batch_index + 1] &&
         start + exec(device, key, batch_index + 1) + margin <= deadline) {
    ++batch_index;
  }

  const uint32_t batch_size = sizes[batch_index];
  BoundedArray<RequestId, kBatchSizeMax> requests;
  for (uint32_t i = 0; i < batch_size; ++i) requests.add(state.requests[first + i].id);
  const Window window{now, deadline - exec(device, key, batch_index) - margin};
  const Verdict verdict = dispatcher.infer(device, key.model, key.bucket, batch_size,
                                           cluster_.device(device).all_lanes(), requests, window);
  if (verdict != Verdict::kAccepted) return false;
  state.requests.erase(first, batch_size);
  update_queue(key, now);
  update_demand(key.model, now);
  return true;
}

std::unique_ptr<Policy> make_clockwork_policy(const Cluster& cluster, const ClockworkOptions& options) {
  return std::make_unique<ClockworkPolicy>(cluster, options);
}

}  // namespace foliot::clockwork
