#include "foundation/core/device_state.h"

#include "foundation/base/check.h"

namespace foliot {

std::string_view to_string(DeviceState state) {
  switch (state) {
    case DeviceState::kUp: return "up";
    case DeviceState::kSuspected: return "suspected";
    case DeviceState::kDraining: return "draining";
    case DeviceState::kLost: return "lost";
  }
  FOLIOT_CHECK(false);
}

std::string_view to_string(DeviceTrouble trouble) {
  switch (trouble) {
    case DeviceTrouble::kNone: return "none";
    case DeviceTrouble::kLeft: return "left";
    case DeviceTrouble::kLink: return "link";
    case DeviceTrouble::kSilent: return "silent";
    case DeviceTrouble::kOverdue: return "overdue";
    case DeviceTrouble::kSlow: return "slow";
    case DeviceTrouble::kLate: return "late";
    case DeviceTrouble::kFailing: return "failing";
  }
  FOLIOT_CHECK(false);
}

}  // namespace foliot
