// DeviceState: the part that a device takes in serving. Only one that is kUp gets work.
#ifndef FOLIOT_FOUNDATION_CORE_DEVICE_STATE_H_
#define FOLIOT_FOUNDATION_CORE_DEVICE_STATE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "foundation/core/ids.h"

namespace foliot {

enum class DeviceState : uint8_t {
  kUp,
  kSuspected,  // a heartbeat or an outcome is overdue; it may be up again any moment
  kDraining,   // finishes its work, and then leaves
  kLost,       // fenced: its messages are ignored until it joins again
};
std::string_view to_string(DeviceState state);  // "up", "suspected", "draining", "lost"

// Why a device is no longer up.
enum class DeviceTrouble : uint8_t {
  kNone,
  kLeft,     // it announced that it leaves, or an operator drained it
  kLink,     // its connection ended
  kSilent,   // no heartbeat for too long
  kOverdue,  // an action should have been over long ago
  kSlow,     // takes many times as long as it should, and others do not
  kLate,     // its messages arrive late, and those of others do not
  kFailing,  // its LOADs or EXECs fail, and those of others do not
};
// "none", "left", "link", "silent", "overdue", "slow", "late", "failing"
std::string_view to_string(DeviceTrouble trouble);

struct DeviceChange {
  DeviceId device;
  DeviceState state = DeviceState::kUp;
  DeviceTrouble trouble = DeviceTrouble::kNone;
  // What a device that has joined holds; it is empty but for these.
  bool joined = false;
  std::span<const ModelId> residents;
  std::string_view kind{};  // of one that has joined, and how many lanes it has
  uint32_t lane_count = 1;
  uint32_t context_count = 1;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_DEVICE_STATE_H_
