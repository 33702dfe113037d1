// VulkanDevice: a GPU as a device, by Vulkan compute. Float32; what it cannot run lower() refuses, naming the node.
//
// It has one lane: one queue, on which one EXEC runs at a time. An EXEC is one submission of command buffers that were
// recorded by prepare(), and one wait for a timeline semaphore.
#ifndef FOLIOT_ENGINE_DEVICE_VULKAN_VULKAN_DEVICE_H_
#define FOLIOT_ENGINE_DEVICE_VULKAN_VULKAN_DEVICE_H_

#include <memory>
#include <string>
#include <string_view>

#include "engine/device/device.h"
#include "engine/device/vulkan/driver.h"
#include "foundation/base/time.h"

namespace foliot {

// When the device began and ended an EXEC, by its own clock, as the host's monotonic clock has it.
struct VulkanExecTimes {
  TimePoint begin, end;
};

class VulkanDevice : public Device {
 public:
  // Of the last run(). Belongs to its thread.
  virtual VulkanExecTimes exec_times() const = 0;
};

// The kind of devices of this name, which has no other signs than a kind may have (foundation/core/model_info.h):
// "vulkan:llvmpipe-LLVM-15.0.6-256-bits".
std::string vulkan_kind(std::string_view name);

// Devices over one driver share its queue and its pipelines.
//
// allocate() also refuses, by kInvalidArgument, pages whose size is no power of two. A run() that failed for good
// (kUnavailable: the device was lost, or an EXEC did not end) makes all later ones fail at once.
std::unique_ptr<VulkanDevice> make_vulkan_device(std::shared_ptr<VulkanDriver> driver);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_VULKAN_VULKAN_DEVICE_H_
