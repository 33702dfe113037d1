// Agenda: the devices to look at in this turn, so that a policy does not look at all of
// them. A device is looked at when it has become free, when something about it changed,
// or when there is work for it and it is not busy.
#ifndef FOLIOT_CONTROL_POLICIES_COMMON_AGENDA_H_
#define FOLIOT_CONTROL_POLICIES_COMMON_AGENDA_H_

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "foundation/base/time.h"
#include "foundation/core/ids.h"

namespace foliot {

class Agenda {
 public:
  // Something about the device changed: look at it, busy or not.
  void changed(DeviceId device);
  // There is work that the device could do: look at it unless it is busy.
  void work_for(DeviceId device);
  // The device has enough to do; look at it again after `until`.
  void busy(DeviceId device, TimePoint until);

  // The next device to look at now, in the order of ids; then it is off the list.
  std::optional<DeviceId> next(TimePoint now);
  // When the next busy device wants to be looked at.
  TimePoint wake() const;

 private:
  void forget_busy(DeviceId device);

  std::set<DeviceId> listed_;
  std::set<std::pair<TimePoint, DeviceId>> busy_;
  std::vector<std::optional<TimePoint>> until_;  // by device: what stands for it in busy_
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_POLICIES_COMMON_AGENDA_H_
