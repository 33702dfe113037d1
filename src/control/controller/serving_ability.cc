#include "control/controller/serving_ability.h"

#include <algorithm>
#include <optional>
#include <set>

#include "foundation/base/check.h"

namespace foliot {

bool ServingAbility::could_serve(ModelId model, TimePoint now) const {
  if (cluster_.copies[model.value()] > 0 || !cluster_.load_back_off.has_failed(model)) return true;
  return std::any_of(cluster_.devices.begin(), cluster_.devices.end(),
                     [&](const DeviceModel& device) { return could_serve(device, model, now); });
}

// A device that is suspected or draining may be up again; a lost one has no pages.
bool ServingAbility::could_serve(const DeviceModel& device, ModelId model, TimePoint now) const {
  if (device.set_aside(model) || !cluster_.may_place(device.id(), model)) return false;
  if (device.held(model) != Residency::kAbsent) return true;
  return device.pages_total() >= cluster_.pages(device.id(), model) && cluster_.may_load(device.id(), model, now);
}

bool ServingAbility::could_serve_elsewhere(DeviceId than, ModelId model, TimePoint now) const {
  return std::any_of(cluster_.devices.begin(), cluster_.devices.end(), [&](const DeviceModel& device) {
    return device.id() != than && device.up() && could_serve(device, model, now);
  });
}

bool ServingAbility::still_meetable(const Request& request, TimePoint now) const {
  return std::any_of(cluster_.devices.begin(), cluster_.devices.end(), [&](const DeviceModel& device) {
    if (!device.up() || !cluster_.may_place(device.id(), request.model)) return false;
    const Duration exec = cluster_.durations().exec({device.id(), request.model, request.bucket, 0});
    return now + device.delivery() + exec + cluster_.margin(device.id()) <= request.deadline;
  });
}

bool ServingAbility::has_able_device(ModelId model) const {
  if (cluster_.copies[model.value()] > 0) return true;
  const std::optional<DeviceId> first = cluster_.first_able(model);
  if (!first) return false;
  return std::any_of(cluster_.devices.begin() + first->value(), cluster_.devices.end(), [&](const DeviceModel& device) {
    return device.state() != DeviceState::kLost && cluster_.may_place(device.id(), model);
  });
}

std::string ServingAbility::unable_detail(ModelId id) const {
  const ModelInfo& model = cluster_.model(id);
  if (cluster_.has_able(id, ModelTarget()))
    return "model '" + model.name + "' is not served: its target leaves it no device";
  std::set<std::string> kinds;
  for (const DeviceModel& device : cluster_.devices) kinds.insert(cluster_.kind_name(device.kind()));
  std::string has;
  for (const std::string& kind : kinds) has += (has.empty() ? "" : ", ") + kind;
  return "model '" + model.name + "' is not served: it runs on devices of kind " + model.kinds() +
         ", and the cluster has " + has;
}

bool ServingAbility::could_hold(const DeviceModel& device, ModelId model) const {
  return device.state() != DeviceState::kLost && cluster_.may_place(device.id(), model) &&
         device.pages_total() >= cluster_.pages(device.id(), model);
}

bool ServingAbility::crowded_out(ModelId model) const {
  if (!cluster_.requires_copies() || cluster_.held[model.value()] > 0) return false;
  bool could = false;
  for (const DeviceModel& device : cluster_.devices) {
    if (!could_hold(device, model)) continue;
    could = true;
    const uint32_t pages = cluster_.pages(device.id(), model);
    if (device.free_pages() >= pages || device.pages_total() - cluster_.required_pages(device) >= pages) return false;
  }
  return could;
}

std::string ServingAbility::crowded_detail(ModelId model) const {
  const DeviceModel* roomiest = nullptr;
  const auto room = [this](const DeviceModel& device) {
    return device.pages_total() - cluster_.required_pages(device);
  };
  for (const DeviceModel& device : cluster_.devices) {
    if (could_hold(device, model) && (roomiest == nullptr || room(device) > room(*roomiest))) roomiest = &device;
  }
  FOLIOT_CHECK(roomiest != nullptr);
  return "model '" + cluster_.model(model).name + "' is not loaded: it needs " +
         std::to_string(cluster_.pages(roomiest->id(), model)) + " pages of a device, and of " +
         std::to_string(roomiest->pages_total()) + " at most " + std::to_string(room(*roomiest)) +
         " are not taken by copies that targets require (copies_least)";
}

void ServingAbility::on_lost(DeviceId device, TimePoint now) {
  lost_at_.resize(cluster_.devices.size());
  lost_at_[device.value()] = now;
}

TimePoint ServingAbility::lost_since(ModelId model) const {
  TimePoint since;
  for (const DeviceModel& device : cluster_.devices) {
    if (!cluster_.may_place(device.id(), model)) continue;
    if (device.state() != DeviceState::kLost) return TimePoint::infinite_future();
    if (device.id().value() < lost_at_.size()) since = std::max(since, lost_at_[device.id().value()]);
  }
  return since;
}

}  // namespace foliot
