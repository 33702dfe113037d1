#include "control/policies/common/batching_policy.h"

#include <algorithm>
#include <span>

#include "foundation/base/bounded_array.h"

namespace foliot {

BatchingRule::Batch densest_batch(const QueueView& queue, size_t first, uint32_t batch_index_max) {
  const std::span<const uint32_t> sizes = queue.batch_sizes();
  const auto available = static_cast<uint32_t>(std::min<size_t>(queue.requests.size() - first, kBatchSizeMax));
  uint32_t full = 0;
  while (full < batch_index_max && sizes[full + 1] <= available) ++full;
  const uint32_t rows = std::min(available, sizes[full]);
  if (full == batch_index_max || rows == available) return {first, rows, full};
  const bool padded_is_denser = queue.exec(full) * int64_t{available} > queue.exec(full + 1) * int64_t{rows};
  return padded_is_denser ? BatchingRule::Batch{first, available, full + 1} : BatchingRule::Batch{first, rows, full};
}

uint32_t largest_in_time(const QueueView& queue, size_t first, TimePoint start) {
  const auto sizes = static_cast<uint32_t>(queue.batch_sizes().size());
  uint32_t batch_index = 0;
  while (batch_index + 1 < sizes && start + queue.exec(batch_index + 1) <= queue.requests[first].deadline)
    ++batch_index;
  return batch_index;
}

BatchingPolicy::BatchingPolicy(const Cluster& cluster, std::unique_ptr<BatchingRule> rule, Duration lookahead,
                               QueryDrop drop)
    : cluster_(cluster),
      rule_(std::move(rule)),
      lookahead_(lookahead),
      drop_(drop),
      residents_(cluster),
      loads_(cluster, residents_),
      keeper_(cluster, *this) {}

QueueView BatchingPolicy::view(QueueKey key, DeviceId device) {
  return {cluster_, cluster_.model(key.model), key, queue(key).requests, device, drop_};
}

DeviceId BatchingPolicy::any_holder(ModelId model) const {
  const std::vector<DeviceId>& holders = residents_.holders(model);
  return holders.empty() ? cluster_.first_able(model).value() : holders.front();
}

std::set<BatchingPolicy::Place>& BatchingPolicy::ready(DeviceId device) {
  if (device.value() >= ready_.size()) ready_.resize(device.value() + 1);
  return ready_[device.value()];
}

// ---- Facts ----

void BatchingPolicy::on_request(const Request& request, TimePoint now) {
  const QueueKey key{request.model, request.bucket};
  if (queue(key).requests.empty()) update_fastest(key);
  queue(key).requests.add(request);
  rule_->on_request(view(key, any_holder(key.model)), request, now);
  update(key, now);
}

void BatchingPolicy::on_withdrawn(const Request& request, TimePoint now) {
  const QueueKey key{request.model, request.bucket};
  queue(key).requests.remove(request);
  update(key, now);
}

void BatchingPolicy::on_outcome(const Action& action, const Outcome& outcome, TimePoint now) {
  residents_.on_outcome(action);
  loads_.on_outcome(action);
  keeper_.on_outcome(action, now);
  agenda_.changed(action.device);
  if (queues_[action.model.value()].empty()) return;  // it was removed
  if (action.type != ActionType::kInfer) return update_model(action.model, now);
  const QueueKey key{action.model, action.bucket};
  if (outcome.done()) rule_->on_exec(action, outcome);
  update_fastest(key);
  update(key, now);
}

void BatchingPolicy::on_device_changed(DeviceId device, TimePoint now) {
  keeper_.on_device_changed();
  update_device(device, now);
}

void BatchingPolicy::on_target_changed(ModelId model, TimePoint now) {
  keeper_.on_target_changed(model);
  loads_.on_device_changed();
  for (uint16_t bucket = 0; bucket < queues_[model.value()].size(); ++bucket) {
    const QueueKey key{model, BucketId(bucket)};
    update_fastest(key);
    update(key, now);
  }
}

void BatchingPolicy::update_device(DeviceId device, TimePoint now) {
  loads_.on_device_changed();
  agenda_.changed(device);
  for (const ModelId model : residents_.on_device_changed(device)) {
    loads_.on_holders_changed(model);
    update_model(model, now);
  }
}

void BatchingPolicy::on_model_added(const ModelInfo& model, TimePoint /*now*/) {
  if (model.id.value() >= queues_.size()) queues_.resize(model.id.value() + 1);
  queues_[model.id.value()].assign(model.buckets.size(), QueueState(rule_->order()));
  rule_->on_model_added(model);
}

void BatchingPolicy::on_model_removed(ModelId model, TimePoint now) {
  update_model(model, now);
  queues_[model.value()].clear();
}

// ---- What follows from the facts ----

void BatchingPolicy::update_model(ModelId model, TimePoint now) {
  for (uint16_t bucket = 0; bucket < queues_[model.value()].size(); ++bucket) update({model, BucketId(bucket)}, now);
}

void BatchingPolicy::update(QueueKey key, TimePoint now) {
  QueueState& state = queue(key);
  std::optional<Place> place;
  std::optional<TimePoint> timer;
  std::optional<TimePoint> expiry;
  if (!state.requests.empty()) {
    const BatchingRule::Offer offer = rule_->offer(view(key, any_holder(key.model)), now);
    if (offer.ready <= now) {
      place = Place{state.requests[0].place.offline, offer.rank, state.requests[0].place, key};
    } else {
      timer = offer.ready;
    }
    if (!state.requests[0].deadline.is_infinite()) expiry = state.requests[0].deadline - state.fastest;
  }
  update_place(state, place, key.model);
  update_alarm(timers_, state.timer, timer, key);
  update_alarm(expiries_, state.expiry, expiry, key);
  update_want(key.model);
}

void BatchingPolicy::update_fastest(QueueKey key) {
  if (drop_ == QueryDrop::kExpired) {
    queue(key).fastest = Duration();
    return;
  }
  Duration best = Duration::max();
  for (const DeviceModel& device : cluster_.devices) {
    if (!cluster_.may_place(device.id(), key.model)) continue;
    const Duration exec = cluster_.durations().exec({device.id(), key.model, key.bucket, 0});
    best = std::min(best, device.delivery() + exec + cluster_.margin(device.id()));
  }
  queue(key).fastest = best;
}

void BatchingPolicy::update_place(QueueState& state, const std::optional<Place>& place, ModelId model) {
  const std::vector<DeviceId>& holders = residents_.holders(model);
  if (state.place != place || state.placed_on != holders) {
    for (const DeviceId device : state.placed_on) {
      if (state.place) ready(device).erase(*state.place);
    }
    for (const DeviceId device : holders) {
      if (place) ready(device).insert(*place);
    }
    state.place = place;
    state.placed_on = holders;
  }
  for (const DeviceId device : holders) {
    if (place) agenda_.work_for(device);
  }
}

void BatchingPolicy::update_want(ModelId model) {
  std::optional<OnDemandLoading::Want> want;
  for (uint16_t bucket = 0; bucket < queues_[model.value()].size(); ++bucket) {
    const QueueState& state = queues_[model.value()][bucket];
    if (state.requests.empty()) continue;
    const RequestQueue::Entry& last = state.requests[state.requests.size() - 1];
    const Duration cold = cluster_.durations().load(cluster_.first_able(model).value(), model) + state.fastest;
    if (!want) want = {TimePoint::infinite_future(), Duration(), TimePoint()};
    if (!state.requests[0].place.offline) want->order = std::min(want->order, state.requests[0].place.order);
    want->work += state.fastest * static_cast<int64_t>(state.requests.size());
    want->helped_until = std::max(want->helped_until, last.deadline - cold);
  }
  loads_.set_want(model, want);
}

void BatchingPolicy::update_alarm(Alarms& alarms, std::optional<TimePoint>& slot, std::optional<TimePoint> next,
                                  QueueKey key) {
  if (slot == next) return;
  if (slot) alarms.erase({*slot, key});
  if (next) alarms.insert({*next, key});
  slot = next;
}

void BatchingPolicy::take(QueueKey key, size_t position, TimePoint now) {
  queue(key).requests.erase(position, 1);
  update(key, now);
}

// ---- Decisions ----

// INFERs first: what was loaded is given to do before room is made for the next.
TimePoint BatchingPolicy::plan(TimePoint now, Dispatcher& dispatcher) {
  refuse_expired(now, dispatcher);
  ring_timers(now);
  while (const std::optional<DeviceId> device = agenda_.next(now)) serve(*device, now, dispatcher);
  const TimePoint targets_wake = keeper_.plan(now, dispatcher);
  TimePoint wake = std::min({targets_wake, loads_.plan(now, dispatcher), agenda_.wake()});
  if (!timers_.empty()) wake = std::min(wake, timers_.begin()->first);
  if (!expiries_.empty()) wake = std::min(wake, expiries_.begin()->first + Duration::microseconds(1));
  return wake;
}

void BatchingPolicy::refuse_expired(TimePoint now, Dispatcher& dispatcher) {
  while (!expiries_.empty() && expiries_.begin()->first < now) {
    const QueueKey key = expiries_.begin()->second;
    QueueState& state = queue(key);
    const TimePoint earliest = now + state.fastest;
    size_t expired = 0;
    while (expired < state.requests.size() && state.requests[expired].deadline < earliest) {
      dispatcher.refuse(state.requests[expired++].id, Refusal::kExpired, earliest);
    }
    state.requests.erase(0, expired);
    update(key, now);
  }
}

void BatchingPolicy::ring_timers(TimePoint now) {
  while (!timers_.empty() && timers_.begin()->first <= now) update(timers_.begin()->second, now);
}

Duration BatchingPolicy::lookahead(DeviceId device) const { return std::max(lookahead_, cluster_.lookahead(device)); }

void BatchingPolicy::serve(DeviceId id, TimePoint now, Dispatcher& dispatcher) {
  const DeviceModel& device = cluster_.device(id);
  while (device.exec_available(now) < now + lookahead(id)) {
    // As many as it takes: an outcome will list it again.
    if (device.infers_outstanding() >= cluster_.infers_outstanding_max) {
      return agenda_.busy(id, TimePoint::infinite_future());
    }
    if (!serve_one(id, now, dispatcher)) return;
  }
  agenda_.busy(id, device.exec_available(now) - lookahead(id));
}

bool BatchingPolicy::serve_one(DeviceId device, TimePoint now, Dispatcher& dispatcher) {
  const TimePoint start = cluster_.device(device).exec_available(now);
  std::set<Place>& places = ready(device);
  for (auto place = places.begin(); place != places.end();) {
    const QueueKey key = place->queue;
    const QueueView queue_here = view(key, device);
    const BatchingRule::Offer offer = rule_->offer(view(key, any_holder(key.model)), now);
    const bool loaded = cluster_.device(device).residency(key.model) == Residency::kLoaded;
    if (!loaded || offer.ready > now || offer.rank != place->rank) {
      // What was evicted goes; what time has changed finds its new place.
      update(key, now);
      place = places.begin();
      continue;
    }
    const BatchingRule::Batch batch = rule_->choose(queue_here, start);
    if (batch.rows > 0) return send(queue_here, batch, start, now, dispatcher);
    ++place;
  }
  return false;
}

// The window closes when the first deadline of the batch can no longer be met, or has passed;
// rules that do not look at deadlines get the lookahead at least.
bool BatchingPolicy::send(const QueueView& queue_here, const BatchingRule::Batch& batch, TimePoint start, TimePoint now,
                          Dispatcher& dispatcher) {
  const QueueKey key = queue_here.key;
  QueueState& state = queue(key);
  BoundedArray<RequestId, kBatchSizeMax> requests;
  TimePoint deadline = TimePoint::infinite_future();
  for (uint32_t i = 0; i < batch.rows; ++i) {
    requests.add(state.requests[batch.first + i].id);
    deadline = std::min(deadline, state.requests[batch.first + i].deadline);
  }
  if (drop_ == QueryDrop::kUnmeetable) deadline = deadline - queue_here.exec(batch.batch_index);
  const Window window{now, std::max(deadline, start + lookahead(queue_here.device))};
  const Verdict verdict =
      dispatcher.infer(queue_here.device, key.model, key.bucket, queue_here.batch_sizes()[batch.batch_index],
                       cluster_.device(queue_here.device).all_lanes(), requests, window);
  if (verdict != Verdict::kAccepted) return false;
  state.requests.erase(batch.first, batch.rows);
  update(key, now);
  return true;
}

}  // namespace foliot
