#include "control/policies/clockwork/load_planner.h"

#include <algorithm>

namespace foliot::clockwork {
namespace {

// The stretch of time in which a device is expected to serve what it is given: the
// paper's default SLO.
constexpr double kCapacitySeconds = 0.1;
// Keeps the weight of an idle device finite.
constexpr double kIdleSeconds = 1e-3;
// How late a LOAD may begin; nothing breaks when it is late, it only helps less.
constexpr Duration kLoadSlack = Duration::milliseconds(100);
constexpr Duration kRetryInterval = Duration::milliseconds(1);

}  // namespace

LoadPlanner::ModelState& LoadPlanner::state(ModelId model) {
  if (model.value() >= states_.size()) states_.resize(model.value() + 1);
  return states_[model.value()];
}

double& LoadPlanner::load(DeviceId device) {
  if (device.value() >= loads_.size()) loads_.resize(device.value() + 1);
  return loads_[device.value()];
}

double LoadPlanner::priority(ModelId model) const {
  return model.value() < states_.size() ? states_[model.value()].priority : 0;
}

void LoadPlanner::set_demand(ModelId model, Duration demand) {
  state(model).demand = demand;
  allocate(model);
}

void LoadPlanner::on_outcome(const Action& action) {
  if (action.type == ActionType::kInfer) return;
  agenda_.changed(action.device);
  retry_.clear();
  if (action.type == ActionType::kLoad) std::erase(state(action.model).loading, action.device);
}

void LoadPlanner::on_device_changed(DeviceId device) {
  agenda_.changed(device);
  retry_.clear();
}

void LoadPlanner::allocate(ModelId model) {
  ModelState& s = state(model);
  for (const Share& share : s.allocation) load(share.device) = std::max(0.0, load(share.device) - share.seconds);
  s.allocation.clear();
  const double demand = s.demand.to_seconds();
  double served = 0;
  if (demand > 0) {
    double weights = 0;
    const auto share_out = [&](DeviceId device) {
      s.allocation.push_back({device, 1 / (kIdleSeconds + load(device))});
      weights += s.allocation.back().seconds;
    };
    for (const DeviceId device : residents_.holders(model)) share_out(device);
    for (const DeviceId device : s.loading) share_out(device);
    for (Share& share : s.allocation) {
      share.seconds *= demand / weights;
      load(share.device) += share.seconds;
      served += share.seconds * kCapacitySeconds / load(share.device);
    }
  }
  const double priority = demand - served;
  if (priority == s.priority) return;
  if (s.priority > 0) priorities_.erase({-s.priority, model});
  if (priority > 0) priorities_.insert({-priority, model});
  s.priority = priority;
}

TimePoint LoadPlanner::plan(TimePoint now, Dispatcher& dispatcher) {
  if (priorities_.empty()) return TimePoint::infinite_future();
  retry_.resize(cluster_.kind_count());
  const std::vector<TimePoint> not_before = retry_;
  if (all_wait(now)) return next_retry(now);
  for (const DeviceId id : free_devices(now)) {
    const DeviceModel& device = cluster_.device(id);
    if (not_before[device.kind().value()] > now) continue;
    const Duration lookahead = std::max(lookahead_, cluster_.lookahead(id));
    while (device.load_available(now) < now + lookahead && load_one(device, now, dispatcher)) {
    }
    if (device.load_available(now) < now + lookahead) continue;
    free_.erase(id);
    agenda_.busy(id, device.load_available(now) - lookahead);
  }
  if (priorities_.empty()) return TimePoint::infinite_future();
  return std::min(agenda_.wake(), next_retry(now));
}

bool LoadPlanner::all_wait(TimePoint now) const {
  for (uint16_t kind = 0; kind < retry_.size(); ++kind) {
    if (cluster_.device_count(KindId(kind)) > 0 && retry_[kind] <= now) return false;
  }
  return true;
}

TimePoint LoadPlanner::next_retry(TimePoint now) const {
  TimePoint next = TimePoint::infinite_future();
  for (const TimePoint retry : retry_) {
    if (retry > now) next = std::min(next, retry);
  }
  return next;
}

std::vector<DeviceId> LoadPlanner::free_devices(TimePoint now) {
  while (const std::optional<DeviceId> device = agenda_.next(now)) free_.insert(*device);
  for (; devices_known_ < cluster_.devices.size(); ++devices_known_) free_.insert(DeviceId(devices_known_));
  std::vector<DeviceId> devices(free_.begin(), free_.end());
  std::stable_sort(devices.begin(), devices.end(), [&](DeviceId a, DeviceId b) { return load(a) < load(b); });
  return devices;
}

std::optional<ModelId> LoadPlanner::choose(const DeviceModel& device, TimePoint now) const {
  for (const auto& [negated, model] : priorities_) {
    if (!cluster_.placed(device.id(), model) && cluster_.may_load(device.id(), model, now) &&
        cluster_.pages(device.id(), model) <= device.page_count()) {
      return model;
    }
  }
  return std::nullopt;
}

bool LoadPlanner::load_model(DeviceId id, ModelId model, TimePoint now, Dispatcher& dispatcher) {
  const auto any = [](ModelId) { return true; };
  if (!residents_.make_room(id, cluster_.pages(id, model), any, dispatcher)) return false;
  const Window window{now, cluster_.device(id).load_available(now) + kLoadSlack};
  if (dispatcher.load(id, model, window) != Verdict::kAccepted) return false;
  state(model).loading.push_back(id);
  allocate(model);
  return true;
}

bool LoadPlanner::load_one(const DeviceModel& device, TimePoint now, Dispatcher& dispatcher) {
  if (device.loads_outstanding() >= cluster_.loads_outstanding_max) return false;
  const std::optional<ModelId> model = choose(device, now);
  if (!model) return false;
  if (load_model(device.id(), *model, now, dispatcher)) return true;
  retry_[device.kind().value()] = now + kRetryInterval;
  return false;
}

}  // namespace foliot::clockwork
