#include "control/policies/common/residents.h"

#include <algorithm>

namespace foliot {

const std::vector<DeviceId>& Residents::holders(ModelId model) const {
  static const std::vector<DeviceId> none;
  return model.value() < holders_.size() ? holders_[model.value()] : none;
}

std::vector<DeviceId>& Residents::holders_of(ModelId model) {
  if (model.value() >= holders_.size()) holders_.resize(model.value() + 1);
  return holders_[model.value()];
}

Residents::ByLastUse& Residents::by_last_use(DeviceId device) {
  if (device.value() >= by_last_use_.size()) by_last_use_.resize(device.value() + 1);
  return by_last_use_[device.value()];
}

void Residents::on_outcome(const Action& action) {
  if (action.type == ActionType::kInfer) return;
  const std::vector<DeviceId>& holders = holders_of(action.model);
  const bool listed = std::binary_search(holders.begin(), holders.end(), action.device);
  const bool loaded = cluster_.device(action.device).residency(action.model) == Residency::kLoaded;
  if (loaded && !listed) add(action.device, action.model);
  if (!loaded && listed) remove(action.device, action.model);
}

std::vector<ModelId> Residents::on_device_changed(DeviceId id) {
  std::vector<ModelId> models;
  for (const auto& [last_used, model] : by_last_use(id)) models.push_back(model);
  for (const ModelId model : models) std::erase(holders_of(model), id);
  by_last_use(id).clear();
  const DeviceModel& device = cluster_.device(id);
  if (device.up()) {
    for (const ModelId model : device.loaded()) {
      if (device.set_aside(model)) continue;
      add(id, model);
      models.push_back(model);
    }
  }
  std::sort(models.begin(), models.end());
  models.erase(std::unique(models.begin(), models.end()), models.end());
  return models;
}

void Residents::add(DeviceId device, ModelId model) {
  std::vector<DeviceId>& holders = holders_of(model);
  holders.insert(std::lower_bound(holders.begin(), holders.end(), device), device);
  by_last_use(device).insert({cluster_.device(device).last_used(model), model});
}

// A model that the controller itself unloaded, because it was removed: rare.
void Residents::remove(DeviceId device, ModelId model) {
  std::erase(holders_of(model), device);
  std::erase_if(by_last_use(device), [&](const auto& entry) { return entry.second == model; });
}

bool Residents::make_room(DeviceId device_id, uint32_t pages, const MayGo& may_go, Dispatcher& dispatcher) {
  const DeviceModel& device = cluster_.device(device_id);
  ByLastUse& order = by_last_use(device_id);
  std::vector<ByLastUse::iterator> victims;
  uint64_t room = device.free_pages();
  for (auto entry = order.begin(); entry != order.end() && room < pages;) {
    const auto [known, model] = *entry;
    const TimePoint last_used = device.last_used(model);
    if (last_used != known) {
      entry = order.erase(entry);
      // It is met again further on, or next if nothing lies between.
      const auto again = order.insert({last_used, model}).first;
      if (std::next(again) == entry) entry = again;
      continue;
    }
    const bool idle = device.residency(model) == Residency::kLoaded && device.infers_outstanding(model) == 0;
    if (idle && cluster_.may_evict(model) && may_go(model)) {
      victims.push_back(entry);
      room += cluster_.pages(device_id, model);
    }
    ++entry;
  }
  if (room < pages) return false;
  for (const auto victim : victims) {
    const ModelId model = victim->second;
    if (dispatcher.unload(device_id, model) != Verdict::kAccepted) return false;
    order.erase(victim);
    std::erase(holders_of(model), device_id);
  }
  return true;
}

}  // namespace foliot
