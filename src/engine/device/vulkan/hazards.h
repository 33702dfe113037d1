// Hazards: finds dispatches of a command buffer that touch the same memory without a barrier between them.
//
// Neither a driver that runs one dispatch after the other nor the validation layer, which cannot see through buffer
// addresses, shows them; a GPU gives wrong results now and then. So every recording is checked before it is used.
#ifndef FOLIOT_ENGINE_DEVICE_VULKAN_HAZARDS_H_
#define FOLIOT_ENGINE_DEVICE_VULKAN_HAZARDS_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/device/vulkan/dispatch.h"

namespace foliot {

// What has run since the last barrier, to say whether the next needs one.
class UnfinishedWork {
 public:
  // Whether `next` reads what is written, or writes what is read or written.
  bool conflicts(const Dispatch& next) const;
  void add(const Dispatch& dispatch);
  void clear();

 private:
  std::vector<PlaceRange> reads_, writes_;
};

// One entry of a command buffer.
struct Recorded {
  const Dispatch* dispatch = nullptr;  // nullptr: a barrier for all memory
};

// "dispatch 3 (vulkan:rows)" of the first that may run beside what it conflicts with; nullopt: there is none.
std::optional<std::string> find_hazard(std::span<const Recorded> recording);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_VULKAN_HAZARDS_H_
