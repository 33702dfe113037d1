// Instance: Vulkan's library opened, an instance of it, and what devices it lists.
#ifndef FOLIOT_ENGINE_DEVICE_VULKAN_INSTANCE_H_
#define FOLIOT_ENGINE_DEVICE_VULKAN_INSTANCE_H_

#include <functional>
#include <string_view>
#include <vector>

#include "engine/device/vulkan/calls.h"
#include "engine/device/vulkan/driver.h"
#include "foundation/base/status.h"

namespace foliot {

struct VulkanInstance {
  void* library = nullptr;  // stays open: drivers have threads
  VulkanCalls calls;        // but for those of a device
  VkInstance instance = VK_NULL_HANDLE;
};

// "VK_ERROR_DEVICE_LOST (-4)".
std::string vulkan_error(VkResult result);

// `validated`: with the validation layer, where it is installed. Errors: those of vulkan_gpus().
Result<VulkanInstance> open_vulkan_instance(bool validated);

struct ListedGpu {
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VulkanGpu gpu;
};
// Errors: kUnavailable if there is none.
Result<std::vector<ListedGpu>> list_gpus(const VulkanInstance& instance);

// The queue family that computes and, where there is one, does not draw.
std::optional<uint32_t> compute_family(const VulkanCalls& calls, VkPhysicalDevice physical);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_VULKAN_INSTANCE_H_
