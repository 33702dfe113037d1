#include "sched/clockwork/clockwork_scheduler.h"

#include <algorithm>
#include <array>

namespace foliot::clockwork {

ClockworkScheduler::ClockworkScheduler(const Cluster& cluster, const ClockworkOptions& options)
    : cluster_(cluster), options_(options), loads_(cluster, options.lookahead) {}

Duration ClockworkScheduler::exec(DeviceId device, LaneKey key, uint32_t batch_index) const {
  return cluster_.estimator.exec(device, key.model, key.bucket, batch_index) + cluster_.deadline_margin;
}

Duration ClockworkScheduler::shortest(LaneKey key) const {
  Duration best = Duration::max();
  for (const DeviceModel& device : cluster_.devices) best = std::min(best, exec(device.id(), key, 0));
  return best;
}

// ---- Facts ----

void ClockworkScheduler::on_request(const Request& request, TimePoint now) {
  const LaneKey key{request.model, request.bucket};
  lane(key).queue.add(request);
  update_lane(key, now);
}

void ClockworkScheduler::on_withdrawn(const Request& request, TimePoint now) {
  const LaneKey key{request.model, request.bucket};
  lane(key).queue.remove(request);
  update_lane(key, now);
}

// The model may have come or gone, and its estimates may have changed.
void ClockworkScheduler::on_outcome(const Action& action, const Outcome& /*outcome*/, TimePoint now) {
  if (action.model.value() < lanes_.size()) update_model(action.model, now);
}

void ClockworkScheduler::on_model_added(const ModelInfo& model, TimePoint /*now*/) {
  if (model.id.value() >= lanes_.size()) lanes_.resize(model.id.value() + 1);
  lanes_[model.id.value()] = std::vector<LaneState>(model.buckets.size());
  loads_.on_model_added(model.id);
}

void ClockworkScheduler::on_model_removed(ModelId model, TimePoint now) {
  update_model(model, now);
  lanes_[model.value()].clear();
  loads_.on_model_removed(model);
}

void ClockworkScheduler::on_missed(ModelId model, TimePoint /*now*/) { loads_.add_missed(model); }

// ---- What follows from the facts ----

void ClockworkScheduler::update_model(ModelId model, TimePoint now) {
  for (uint16_t bucket = 0; bucket < lanes_[model.value()].size(); ++bucket) {
    update_lane({model, BucketId(bucket)}, now);
  }
}

void ClockworkScheduler::update_lane(LaneKey key, TimePoint now) {
  strategies_.resize(cluster_.devices.size());
  const auto batch_sizes = static_cast<uint32_t>(cluster_.model(key.model).batch_sizes.size());
  for (const DeviceModel& device : cluster_.devices) {
    const TimePoint start = device.exec_available(now);
    for (uint32_t b = 0; b < batch_sizes; ++b) update_strategy(device.id(), key, b, start);
  }
  update_expiry(key);

  Duration work;
  TimePoint last_deadline;
  bool any = false;
  const auto& buckets = lanes_[key.model.value()];
  for (uint16_t bucket = 0; bucket < buckets.size(); ++bucket) {
    const Lane& queue = buckets[bucket].queue;
    if (queue.empty() || cluster_.devices.empty()) continue;
    any = true;
    last_deadline = std::max(last_deadline, queue[queue.size() - 1].deadline);
    // As batches of the largest size, and one row at a time what is left over.
    const DeviceId any_device = cluster_.devices.front().id();
    const auto largest = static_cast<size_t>(cluster_.model(key.model).batch_size_max());
    const auto full = static_cast<int64_t>(queue.size() / largest);
    const auto rest = static_cast<int64_t>(queue.size() % largest);
    work += cluster_.estimator.exec(any_device, key.model, BucketId(bucket), batch_sizes - 1) * full +
            cluster_.estimator.exec(any_device, key.model, BucketId(bucket), 0) * rest;
  }
  if (any) {
    loads_.set_demand(key.model, {work, last_deadline, shortest(key)});
  } else {
    loads_.clear_demand(key.model);
  }
}

// Brings the one strategy of a lane, batch size and device into agreement with
// the queue as it would be at `start`.
void ClockworkScheduler::update_strategy(DeviceId device, LaneKey key, uint32_t batch_index, TimePoint start) {
  LaneState& state = lane(key);
  state.strategies.resize(cluster_.devices.size());
  auto& slots = state.strategies[device.value()];
  const ModelInfo& model = cluster_.model(key.model);
  slots.resize(model.batch_sizes.size());
  std::optional<Strategy>& slot = slots[batch_index];

  std::optional<Strategy> next;
  if (cluster_.device(device).residency(key.model) == Residency::kLoaded && !state.queue.empty()) {
    const Duration duration = exec(device, key, batch_index);
    const size_t first = state.queue.first_due_from(start + duration);
    if (state.queue.size() - first >= model.batch_sizes[batch_index]) {
      const Lane::Entry& head = state.queue[first];
      next = Strategy{head.deadline - duration, head.id, key, batch_index};
    }
  }
  if (slot == next) return;
  if (slot) strategies_[device.value()].erase(*slot);
  if (next) strategies_[device.value()].insert(*next);
  slot = next;
}

void ClockworkScheduler::update_expiry(LaneKey key) {
  LaneState& state = lane(key);
  std::optional<TimePoint> next;
  if (!state.queue.empty() && !state.queue[0].deadline.is_infinite()) {
    next = state.queue[0].deadline - shortest(key);
  }
  if (state.expiry == next) return;
  if (state.expiry) expiries_.erase({*state.expiry, key});
  if (next) expiries_.insert({*next, key});
  state.expiry = next;
}

// ---- Decisions ----

TimePoint ClockworkScheduler::plan(TimePoint now, Dispatcher& dispatcher) {
  strategies_.resize(cluster_.devices.size());
  refuse_expired(now, dispatcher);
  TimePoint wake = loads_.plan(now, dispatcher);
  for (const DeviceModel& device : cluster_.devices) {
    while (device.exec_available(now) < now + options_.lookahead) {
      if (!plan_infer(device.id(), now, dispatcher)) break;
    }
    const TimePoint available = device.exec_available(now);
    if (!strategies_[device.id().value()].empty() && available >= now + options_.lookahead) {
      wake = std::min(wake, available - options_.lookahead + Duration::microseconds(1));
    }
  }
  if (!expiries_.empty()) wake = std::min(wake, expiries_.begin()->first + Duration::microseconds(1));
  return wake;
}

void ClockworkScheduler::refuse_expired(TimePoint now, Dispatcher& dispatcher) {
  while (!expiries_.empty() && expiries_.begin()->first < now) {
    const LaneKey key = expiries_.begin()->second;
    LaneState& state = lane(key);
    const Duration duration = shortest(key);
    const size_t expired = state.queue.first_due_from(now + duration);
    for (size_t i = 0; i < expired; ++i) dispatcher.refuse(state.queue[i].id, Refusal::kExpired, now + duration);
    state.queue.erase(0, expired);
    update_lane(key, now);
  }
}

bool ClockworkScheduler::plan_infer(DeviceId device, TimePoint now, Dispatcher& dispatcher) {
  const TimePoint start = cluster_.device(device).exec_available(now);
  std::set<Strategy>& strategies = strategies_[device.value()];
  while (!strategies.empty()) {
    const Strategy strategy = *strategies.begin();
    const bool loaded = cluster_.device(device).residency(strategy.lane.model) == Residency::kLoaded;
    if (loaded && strategy.latest >= start) return send_batch(device, strategy, start, now, dispatcher);
    // The model was evicted, or the head can no longer be met in a batch of this
    // size; then the next one's might.
    update_strategy(device, strategy.lane, strategy.batch_index, start);
  }
  return false;
}

bool ClockworkScheduler::send_batch(DeviceId device, const Strategy& strategy, TimePoint start, TimePoint now,
                                    Dispatcher& dispatcher) {
  const LaneKey key = strategy.lane;
  const std::vector<uint32_t>& sizes = cluster_.model(key.model).batch_sizes;
  LaneState& state = lane(key);
  uint32_t batch_index = strategy.batch_index;
  size_t first = state.queue.first_due_from(start + exec(device, key, batch_index));
  FOLIOT_CHECK(state.queue.size() - first >= sizes[batch_index]);
  // A larger batch takes longer, so its queue may begin behind the head: who is
  // left behind may still go in a smaller batch, or gives way to those who fill
  // this one.
  while (batch_index + 1 < sizes.size()) {
    const size_t next_first = state.queue.first_due_from(start + exec(device, key, batch_index + 1));
    if (state.queue.size() - next_first < sizes[batch_index + 1]) break;
    first = next_first;
    ++batch_index;
  }
  const TimePoint head_deadline = state.queue[first].deadline;

  const uint32_t batch_size = sizes[batch_index];
  std::array<RequestId, kBatchSizeMax> requests;
  for (uint32_t i = 0; i < batch_size; ++i) requests[i] = state.queue[first + i].id;
  const Window window{now, head_deadline - exec(device, key, batch_index)};
  const Verdict verdict =
      dispatcher.infer(device, key.model, key.bucket, batch_size, std::span(requests.data(), batch_size), window);
  if (verdict != Verdict::kAccepted) return false;
  state.queue.erase(first, batch_size);
  update_lane(key, now);
  return true;
}

std::unique_ptr<Scheduler> make_clockwork_scheduler(const Cluster& cluster, const ClockworkOptions& options) {
  return std::make_unique<ClockworkScheduler>(cluster, options);
}

}  // namespace foliot::clockwork
