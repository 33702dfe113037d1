#include "control/policies/common/agenda.h"

namespace foliot {

void Agenda::changed(DeviceId device) {
  forget_busy(device);
  listed_.insert(device);
}

void Agenda::work_for(DeviceId device) {
  const bool busy = device.value() < until_.size() && until_[device.value()];
  if (!busy) listed_.insert(device);
}

void Agenda::busy(DeviceId device, TimePoint until) {
  forget_busy(device);
  if (device.value() >= until_.size()) until_.resize(device.value() + 1);
  until_[device.value()] = until;
  busy_.insert({until, device});
}

void Agenda::forget_busy(DeviceId device) {
  if (device.value() >= until_.size() || !until_[device.value()]) return;
  busy_.erase({*until_[device.value()], device});
  until_[device.value()].reset();
}

std::optional<DeviceId> Agenda::next(TimePoint now) {
  while (!busy_.empty() && busy_.begin()->first < now) changed(busy_.begin()->second);
  if (listed_.empty()) return std::nullopt;
  const DeviceId device = *listed_.begin();
  listed_.erase(listed_.begin());
  return device;
}

TimePoint Agenda::wake() const {
  return busy_.empty() ? TimePoint::infinite_future() : busy_.begin()->first + Duration::nanoseconds(1);
}

}  // namespace foliot
