#include "sched/clockwork/load_planner.h"

#include <algorithm>

namespace foliot::clockwork {
namespace {

// The stretch of time in which a device is expected to serve what it is given.
constexpr double kCapacitySeconds = 0.1;
// How late a LOAD may begin; nothing breaks when it is late, it only helps less.
constexpr Duration kLoadSlack = Duration::milliseconds(100);

}  // namespace

void LoadPlanner::set_demand(ModelId model, const Demand& demand) {
  load_.resize(cluster_.devices.size());
  Allocation& allocation = demands_[model];
  withdraw(allocation);
  allocation.demand = demand;
  allocation.by_device.assign(load_.size(), 0);
  constexpr double kIdle = 1e-3;  // keeps an idle device's weight finite
  double weights = 0;
  for (const DeviceModel& device : cluster_.devices) {
    if (cluster_.placed(device.id(), model)) weights += 1 / (kIdle + load_[device.id().value()]);
  }
  for (const DeviceModel& device : cluster_.devices) {
    if (!cluster_.placed(device.id(), model)) continue;
    const uint32_t g = device.id().value();
    allocation.by_device[g] = demand.work.to_seconds() / (kIdle + load_[g]) / weights;
  }
  for (size_t g = 0; g < load_.size(); ++g) load_[g] += allocation.by_device[g];
}

void LoadPlanner::clear_demand(ModelId model) {
  const auto found = demands_.find(model);
  if (found == demands_.end()) return;
  withdraw(found->second);
  demands_.erase(found);
}

void LoadPlanner::withdraw(const Allocation& allocation) {
  for (size_t g = 0; g < allocation.by_device.size(); ++g) {
    load_[g] = std::max(0.0, load_[g] - allocation.by_device[g]);
  }
}

void LoadPlanner::on_model_removed(ModelId model) {
  clear_demand(model);
  missed_.erase(model);
  unseen_.erase(model);
}

TimePoint LoadPlanner::plan(TimePoint now, Dispatcher& dispatcher) {
  TimePoint wake = TimePoint::infinite_future();
  for (const DeviceModel& device : cluster_.devices) {
    while (device.load_available(now) < now + lookahead_) {
      const std::optional<ModelId> model = choose(device, now);
      if (!model || !make_room(device, cluster_.model(*model).pages, dispatcher)) break;
      const Window window{now, device.load_available(now) + kLoadSlack};
      if (dispatcher.load(device.id(), *model, window) != Verdict::kAccepted) break;
      missed_.erase(*model);
      unseen_.erase(*model);
    }
    if (!demands_.empty() && device.load_available(now) >= now + lookahead_) {
      wake = std::min(wake, device.load_available(now) - lookahead_ + Duration::microseconds(1));
    }
  }
  return wake;
}

// Demand first. Where there is none and the executor is idle: what was missed,
// then, into free pages only, what was never loaded.
std::optional<ModelId> LoadPlanner::choose(const DeviceModel& device, TimePoint now) const {
  if (const std::optional<ModelId> wanted = choose_by_demand(device, now)) return wanted;
  if (device.loads_outstanding() > 0) return std::nullopt;
  for (const ModelId model : missed_) {
    if (!cluster_.placed(device.id(), model) && cluster_.model(model).pages <= device.page_count()) return model;
  }
  for (const ModelId model : unseen_) {
    if (!cluster_.placed(device.id(), model) && cluster_.model(model).pages <= device.free_pages()) return model;
  }
  return std::nullopt;
}

std::optional<ModelId> LoadPlanner::choose_by_demand(const DeviceModel& device, TimePoint now) const {
  std::optional<ModelId> best;
  double best_priority = 0;
  for (const auto& [model, allocation] : demands_) {
    if (cluster_.placed(device.id(), model) || cluster_.model(model).pages > device.page_count()) continue;
    const double p = priority(allocation);
    if (p > best_priority && could_still_help(device, model, allocation.demand, now)) {
      best = model;
      best_priority = p;
    }
  }
  return best;
}

// p_m = d_m - sum over g of a_mg * capacity / load_g.
double LoadPlanner::priority(const Allocation& allocation) const {
  double served = 0;
  for (size_t g = 0; g < allocation.by_device.size(); ++g) {
    if (allocation.by_device[g] > 0) served += allocation.by_device[g] * kCapacitySeconds / load_[g];
  }
  return allocation.demand.work.to_seconds() - served;
}

bool LoadPlanner::could_still_help(const DeviceModel& device, ModelId model, const Demand& demand,
                                   TimePoint now) const {
  const TimePoint loaded = device.load_available(now) + cluster_.estimator.load(device.id(), model);
  return loaded + demand.shortest_exec <= demand.last_deadline;
}

bool LoadPlanner::make_room(const DeviceModel& device, uint32_t pages, Dispatcher& dispatcher) {
  if (device.free_pages() >= pages) return true;
  std::vector<std::pair<TimePoint, ModelId>> evictable;
  uint64_t room = device.free_pages();
  for (const auto& model : cluster_.models) {
    if (model == nullptr || device.residency(model->id) != Residency::kLoaded ||
        device.infers_outstanding(model->id) > 0) {
      continue;
    }
    evictable.emplace_back(device.last_used(model->id), model->id);
    room += model->pages;
  }
  if (room < pages) return false;
  std::sort(evictable.begin(), evictable.end());
  for (const auto& [last_used, model] : evictable) {
    if (device.free_pages() >= pages) break;
    if (dispatcher.unload(device.id(), model) != Verdict::kAccepted) return false;
  }
  return true;
}

}  // namespace foliot::clockwork
