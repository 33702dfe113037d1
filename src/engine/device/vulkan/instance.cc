#include "engine/device/vulkan/instance.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace foliot {
namespace {

constexpr const char* kLibrary = "libvulkan.so.1";
constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";
constexpr uint32_t kVersion = VK_API_VERSION_1_3;

Status find_calls(VulkanCalls& calls, VkInstance instance) {
  const char* missing = nullptr;
  const auto find = [&](auto& call, const char* name) {
    call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(calls.GetInstanceProcAddr(instance, name));
    if (call == nullptr) missing = name;
  };
#define FOLIOT_FIND(name) find(calls.name, "vk" #name);
  if (instance == VK_NULL_HANDLE) {
    FOLIOT_VULKAN_GLOBAL_CALLS(FOLIOT_FIND)
  } else {
    FOLIOT_VULKAN_INSTANCE_CALLS(FOLIOT_FIND)
  }
#undef FOLIOT_FIND
  if (missing == nullptr) return {};
  return Status::unavailable(
      fmt::format("{} has no {}: it is older than Vulkan 1.3; install a newer one", kLibrary, missing));
}

bool has_validation(const VulkanCalls& calls) {
  uint32_t count = 0;
  calls.EnumerateInstanceLayerProperties(&count, nullptr);
  std::vector<VkLayerProperties> layers(count);
  calls.EnumerateInstanceLayerProperties(&count, layers.data());
  return std::ranges::any_of(layers, [](const VkLayerProperties& layer) {
    return std::strcmp(static_cast<const char*>(layer.layerName), kValidationLayer) == 0;
  });
}

uint64_t memory_of(const VulkanCalls& calls, VkPhysicalDevice physical) {
  VkPhysicalDeviceMemoryProperties memory{};
  calls.GetPhysicalDeviceMemoryProperties(physical, &memory);
  uint64_t bytes = 0;
  for (uint32_t heap = 0; heap < memory.memoryHeapCount; ++heap)
    if ((memory.memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0) bytes += memory.memoryHeaps[heap].size;
  return bytes;
}

// The first of what the shaders and this code need and the device has not.
std::string lacks(const VulkanCalls& calls, VkPhysicalDevice physical, uint32_t version) {
  if (version < kVersion) return "Vulkan 1.3";
  VkPhysicalDeviceVulkan13Features features13{};
  features13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
  VkPhysicalDeviceVulkan12Features features12{};
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features12.pNext = &features13;
  VkPhysicalDeviceVulkan11Features features11{};
  features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  features11.pNext = &features12;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &features11;
  calls.GetPhysicalDeviceFeatures2(physical, &features);
  if (features12.bufferDeviceAddress == VK_FALSE) return "bufferDeviceAddress";
  if (features12.timelineSemaphore == VK_FALSE) return "timelineSemaphore";
  if (features13.synchronization2 == VK_FALSE) return "synchronization2";
  if (features13.maintenance4 == VK_FALSE) return "maintenance4";
  if (features12.shaderInt8 == VK_FALSE || features12.storageBuffer8BitAccess == VK_FALSE) return "8-bit integers";
  if (features.features.shaderInt16 == VK_FALSE || features11.storageBuffer16BitAccess == VK_FALSE)
    return "16-bit integers";
  if (features.features.shaderInt64 == VK_FALSE) return "64-bit integers";
  if (!compute_family(calls, physical)) return "a queue that computes";
  return {};
}

}  // namespace

std::string vulkan_error(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED: return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST: return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_TIMEOUT: return "VK_TIMEOUT";
    default: return fmt::format("VkResult {}", static_cast<int>(result));
  }
}

std::optional<uint32_t> compute_family(const VulkanCalls& calls, VkPhysicalDevice physical) {
  uint32_t count = 0;
  calls.GetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  calls.GetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
  std::optional<uint32_t> found;
  for (uint32_t family = 0; family < count; ++family) {
    if ((families[family].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0 || families[family].timestampValidBits == 0) continue;
    const bool draws = (families[family].queueFlags & VK_QUEUE_GRAPHICS_BIT) != 0;
    if (!found || !draws) found = family;
    if (!draws) break;
  }
  return found;
}

Result<VulkanInstance> open_vulkan_instance(bool validated) {
  VulkanInstance opened;
  opened.library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (opened.library == nullptr) {
    return Status::unavailable(fmt::format("no {}: install libvulkan1 and the GPU's driver", kLibrary));
  }
  opened.calls.GetInstanceProcAddr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(::dlsym(opened.library, "vkGetInstanceProcAddr"));
  if (opened.calls.GetInstanceProcAddr == nullptr)
    return Status::unavailable(fmt::format("{} is no loader of Vulkan", kLibrary));
  FOLIOT_RETURN_IF_ERROR(find_calls(opened.calls, VK_NULL_HANDLE));
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "foliot";
  application.apiVersion = kVersion;
  VkInstanceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  create.pApplicationInfo = &application;
  const char* const extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  // Its shader instrumentation costs much and finds addresses outside of every buffer only.
  const VkValidationFeatureEnableEXT synchronisation = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT features{};
  features.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = &synchronisation;
  if (validated && has_validation(opened.calls)) {
    create.pNext = &features;
    create.enabledLayerCount = 1;
    create.ppEnabledLayerNames = &kValidationLayer;
    create.enabledExtensionCount = 1;
    create.ppEnabledExtensionNames = &extension;
  }
  const VkResult result = opened.calls.CreateInstance(&create, nullptr, &opened.instance);
  if (result != VK_SUCCESS) {
    return Status::unavailable(
        fmt::format("Vulkan finds no driver ({}): install the GPU's driver", vulkan_error(result)));
  }
  FOLIOT_RETURN_IF_ERROR(find_calls(opened.calls, opened.instance));
  return opened;
}

Result<std::vector<ListedGpu>> list_gpus(const VulkanInstance& instance) {
  const VulkanCalls& calls = instance.calls;
  uint32_t count = 0;
  const VkResult result = calls.EnumeratePhysicalDevices(instance.instance, &count, nullptr);
  std::vector<VkPhysicalDevice> devices(count);
  if (result == VK_SUCCESS) calls.EnumeratePhysicalDevices(instance.instance, &count, devices.data());
  if (result != VK_SUCCESS || count == 0) {
    return Status::unavailable(
        "Vulkan's drivers find no device; is the GPU's driver installed and may this user use it?");
  }
  std::vector<ListedGpu> listed;
  for (const VkPhysicalDevice physical : devices) {
    VkPhysicalDeviceDriverProperties driver{};
    driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
    VkPhysicalDeviceProperties2 properties{};
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    properties.pNext = &driver;
    calls.GetPhysicalDeviceProperties2(physical, &properties);
    const VkPhysicalDeviceProperties& of = properties.properties;
    listed.push_back({physical,
                      {.name = static_cast<const char*>(of.deviceName),
                       .driver = fmt::format("{} {}", static_cast<const char*>(driver.driverName),
                                             static_cast<const char*>(driver.driverInfo)),
                       .memory_bytes = memory_of(calls, physical),
                       .is_processor = of.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU,
                       .lacks = lacks(calls, physical, of.apiVersion)}});
  }
  return listed;
}

VulkanFiles vulkan_files() {
  namespace fs = std::filesystem;
  // Something to control there always is: a driver that computes on the CPU may do what the others may.
  VulkanFiles files{.readable = {}, .controlled = {"/dev/null"}};
  std::error_code error;
  for (const char* folder : {"/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/share/vulkan", "/etc/vulkan",
                             "/usr/share/drirc.d", "/etc/ld.so.cache", "/proc/cpuinfo", "/sys/devices"}) {
    if (fs::exists(folder, error)) files.readable.emplace_back(folder);
  }
  for (fs::directory_iterator entry("/dev", error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name == "kfd" || (name.starts_with("nvidia") && !entry->is_directory(error))) {
      files.controlled.push_back(entry->path());
    }
  }
  for (fs::directory_iterator entry("/dev/dri", error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().string().starts_with("renderD")) files.controlled.push_back(entry->path());
  }
  return files;
}

Result<std::vector<VulkanGpu>> vulkan_gpus() {
  FOLIOT_ASSIGN_OR_RETURN(const VulkanInstance instance, open_vulkan_instance(false));
  const Result<std::vector<ListedGpu>> listed = list_gpus(instance);
  instance.calls.DestroyInstance(instance.instance, nullptr);
  if (!listed.ok()) return listed.status();
  std::vector<VulkanGpu> gpus;
  for (const ListedGpu& entry : *listed) gpus.push_back(entry.gpu);
  return gpus;
}

}  // namespace foliot
