// DeviceState: how a device takes part in serving. Whoever is not kUp is given no
// work.
#ifndef FOLIOT_CORE_DEVICE_STATE_H_
#define FOLIOT_CORE_DEVICE_STATE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "core/ids.h"

namespace foliot {

enum class DeviceState : uint8_t {
  kUp,
  kSuspected,  // owes an answer; it may be up again any moment
  kDraining,   // ends what it has, and then leaves
  kLost,       // fenced: nothing that it still says counts, until it joins again
};
std::string_view to_string(DeviceState state);  // "up", "suspected", "draining", "lost"

// Why a device is no longer up.
enum class DeviceTrouble : uint8_t {
  kNone,
  kLeft,     // it said so, or an operator did
  kLink,     // its connection is over
  kSilent,   // not a word for too long
  kOverdue,  // an action should have been over long ago
  kSlow,     // takes many times as long as it should, and others do not
  kLate,     // what it says comes late, and what others say does not
  kFailing,  // its LOADs or EXECs fail, and those of others do not
};
// "none", "left", "link", "silent", "overdue", "slow", "late", "failing"
std::string_view to_string(DeviceTrouble trouble);

struct DeviceChange {
  DeviceId device;
  DeviceState state = DeviceState::kUp;
  DeviceTrouble trouble = DeviceTrouble::kNone;
  // Of one that has joined: it is empty but for these.
  bool joined = false;
  std::span<const ModelId> residents;
};

}  // namespace foliot

#endif  // FOLIOT_CORE_DEVICE_STATE_H_
