// VulkanCalls: the functions of Vulkan's loader, found when it is opened.
#ifndef FOLIOT_ENGINE_DEVICE_VULKAN_CALLS_H_
#define FOLIOT_ENGINE_DEVICE_VULKAN_CALLS_H_

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

// Before there is an instance, of an instance, and of a device.
#define FOLIOT_VULKAN_GLOBAL_CALLS(CALL) \
  CALL(CreateInstance)                   \
  CALL(EnumerateInstanceVersion)         \
  CALL(EnumerateInstanceLayerProperties)

#define FOLIOT_VULKAN_INSTANCE_CALLS(CALL)     \
  CALL(DestroyInstance)                        \
  CALL(EnumeratePhysicalDevices)               \
  CALL(GetPhysicalDeviceProperties2)           \
  CALL(GetPhysicalDeviceFeatures2)             \
  CALL(GetPhysicalDeviceMemoryProperties)      \
  CALL(GetPhysicalDeviceQueueFamilyProperties) \
  CALL(EnumerateDeviceExtensionProperties)     \
  CALL(CreateDevice)                           \
  CALL(GetDeviceProcAddr)

#define FOLIOT_VULKAN_DEVICE_CALLS(CALL) \
  CALL(DestroyDevice)                    \
  CALL(GetDeviceQueue)                   \
  CALL(CreateBuffer)                     \
  CALL(DestroyBuffer)                    \
  CALL(GetBufferMemoryRequirements)      \
  CALL(AllocateMemory)                   \
  CALL(FreeMemory)                       \
  CALL(BindBufferMemory)                 \
  CALL(MapMemory)                        \
  CALL(GetBufferDeviceAddress)           \
  CALL(CreateShaderModule)               \
  CALL(DestroyShaderModule)              \
  CALL(CreatePipelineLayout)             \
  CALL(DestroyPipelineLayout)            \
  CALL(CreateComputePipelines)           \
  CALL(DestroyPipeline)                  \
  CALL(CreateCommandPool)                \
  CALL(DestroyCommandPool)               \
  CALL(AllocateCommandBuffers)           \
  CALL(BeginCommandBuffer)               \
  CALL(EndCommandBuffer)                 \
  CALL(CmdBindPipeline)                  \
  CALL(CmdPushConstants)                 \
  CALL(CmdDispatch)                      \
  CALL(CmdPipelineBarrier2)              \
  CALL(CmdResetQueryPool)                \
  CALL(CmdWriteTimestamp2)               \
  CALL(CreateQueryPool)                  \
  CALL(DestroyQueryPool)                 \
  CALL(GetQueryPoolResults)              \
  CALL(CreateSemaphore)                  \
  CALL(DestroySemaphore)                 \
  CALL(WaitSemaphores)                   \
  CALL(QueueSubmit2)                     \
  CALL(DeviceWaitIdle)

namespace foliot {

struct VulkanCalls {
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
#define FOLIOT_VULKAN_MEMBER(name) PFN_vk##name name = nullptr;
  FOLIOT_VULKAN_GLOBAL_CALLS(FOLIOT_VULKAN_MEMBER)
  FOLIOT_VULKAN_INSTANCE_CALLS(FOLIOT_VULKAN_MEMBER)
  FOLIOT_VULKAN_DEVICE_CALLS(FOLIOT_VULKAN_MEMBER)
#undef FOLIOT_VULKAN_MEMBER
  // Of extensions; nullptr where the driver or a layer lacks them.
  PFN_vkCreateDebugUtilsMessengerEXT CreateDebugUtilsMessengerEXT = nullptr;
  PFN_vkDestroyDebugUtilsMessengerEXT DestroyDebugUtilsMessengerEXT = nullptr;
  PFN_vkGetCalibratedTimestampsEXT GetCalibratedTimestampsEXT = nullptr;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_VULKAN_CALLS_H_
