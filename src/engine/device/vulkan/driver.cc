#include "engine/device/vulkan/driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "engine/device/vulkan/instance.h"
#include "engine/device/vulkan/shader_code.h"
#include "foundation/base/check.h"
#include "foundation/base/units.h"

namespace foliot {
namespace {

// Of the run's address and the words.
constexpr uint32_t kPushBytes = 8 + 4 * kShaderWordsMax;

VKAPI_ATTR VkBool32 VKAPI_CALL pass_on(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                       const VkDebugUtilsMessengerCallbackDataEXT* data, void* to) {
  static_cast<const VulkanOptions*>(to)->on_message(data->pMessage);
  return VK_FALSE;
}

std::string listing(const std::vector<ListedGpu>& gpus) {
  std::string text;
  for (size_t i = 0; i < gpus.size(); ++i) {
    text += fmt::format("{}{} '{}'", i == 0 ? "" : ", ", i, gpus[i].gpu.name);
    if (!gpus[i].gpu.lacks.empty()) text += fmt::format(" (lacks {})", gpus[i].gpu.lacks);
  }
  return text;
}

Result<ListedGpu> choose(const std::vector<ListedGpu>& gpus, const std::string& which) {
  const auto can_be_used = [](const ListedGpu& gpu) { return gpu.gpu.lacks.empty(); };
  if (which.empty()) {
    const auto found =
        std::ranges::find_if(gpus, [&](const ListedGpu& gpu) { return can_be_used(gpu) && !gpu.gpu.is_processor; });
    if (found != gpus.end()) return *found;
    return Status::not_found(fmt::format(
        "no GPU; a driver that computes on the CPU is used by its number or name only ({})", listing(gpus)));
  }
  size_t number = gpus.size();
  const auto parsed = std::from_chars(which.data(), which.data() + which.size(), number);
  const bool is_number = parsed.ec == std::errc() && parsed.ptr == which.data() + which.size();
  const auto named = std::ranges::find_if(gpus, [&](const ListedGpu& gpu) { return gpu.gpu.name == which; });
  if (!is_number) number = static_cast<size_t>(named - gpus.begin());
  if (number >= gpus.size())
    return Status::not_found(fmt::format("there is no '{}'; there are {}", which, listing(gpus)));
  if (can_be_used(gpus[number])) return gpus[number];
  return Status::unimplemented(
      fmt::format("'{}' ({}) lacks {}", gpus[number].gpu.name, gpus[number].gpu.driver, gpus[number].gpu.lacks));
}

// Memory that is near and that the host writes comes first, then any that the host writes.
std::optional<uint32_t> memory_type(const VkPhysicalDeviceMemoryProperties& memory, uint32_t allowed, uint64_t bytes) {
  constexpr VkMemoryPropertyFlags kHost = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  for (const VkMemoryPropertyFlags wanted : {kHost | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, kHost}) {
    for (uint32_t type = 0; type < memory.memoryTypeCount; ++type) {
      const VkMemoryType& of = memory.memoryTypes[type];
      if ((allowed >> type & 1) != 0 && (of.propertyFlags & wanted) == wanted &&
          memory.memoryHeaps[of.heapIndex].size >= bytes) {
        return type;
      }
    }
  }
  return std::nullopt;
}

Status failed(std::string_view call, VkResult result) {
  return Status::internal(fmt::format("Vulkan: {} failed: {}", call, vulkan_error(result)));
}

}  // namespace

Result<std::shared_ptr<VulkanDriver>> VulkanDriver::open(const VulkanOptions& options) {
  std::shared_ptr<VulkanDriver> driver(new VulkanDriver(options));
  FOLIOT_RETURN_IF_ERROR(driver->open_device());
  return driver;
}

VulkanDriver::~VulkanDriver() {
  if (device_ != VK_NULL_HANDLE) {
    calls_.DeviceWaitIdle(device_);
    for (const auto& [key, pipeline] : pipelines_) calls_.DestroyPipeline(device_, pipeline, nullptr);
    for (const VkShaderModule shader : modules_) calls_.DestroyShaderModule(device_, shader, nullptr);
    calls_.DestroyPipelineLayout(device_, layout_, nullptr);
    calls_.DestroyCommandPool(device_, warm_up_pool_, nullptr);
    calls_.DestroySemaphore(device_, warm_up_done_, nullptr);
    calls_.DestroyDevice(device_, nullptr);
  }
  if (messenger_ != VK_NULL_HANDLE) calls_.DestroyDebugUtilsMessengerEXT(instance_, messenger_, nullptr);
  if (instance_ != VK_NULL_HANDLE) calls_.DestroyInstance(instance_, nullptr);
}

Status VulkanDriver::open_device() {
  FOLIOT_ASSIGN_OR_RETURN(const VulkanInstance opened, open_vulkan_instance(static_cast<bool>(options_.on_message)));
  library_ = opened.library;
  calls_ = opened.calls;
  instance_ = opened.instance;
  if (options_.on_message) say_messages();
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<ListedGpu> gpus, list_gpus(opened));
  FOLIOT_ASSIGN_OR_RETURN(const ListedGpu chosen, choose(gpus, options_.which));
  gpu_ = chosen.gpu;
  physical_ = chosen.physical;
  FOLIOT_RETURN_IF_ERROR(create_device(chosen.physical));
  FOLIOT_RETURN_IF_ERROR(create_shaders());
  calibrate();
  return {};
}

void VulkanDriver::say_messages() {
  const auto find = [&](auto& call, const char* name) {
    call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(calls_.GetInstanceProcAddr(instance_, name));
  };
  find(calls_.CreateDebugUtilsMessengerEXT, "vkCreateDebugUtilsMessengerEXT");
  find(calls_.DestroyDebugUtilsMessengerEXT, "vkDestroyDebugUtilsMessengerEXT");
  if (calls_.CreateDebugUtilsMessengerEXT == nullptr) return;
  VkDebugUtilsMessengerCreateInfoEXT create{};
  create.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  create.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  create.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  create.pfnUserCallback = pass_on;
  create.pUserData = const_cast<VulkanOptions*>(&options_);
  calls_.CreateDebugUtilsMessengerEXT(instance_, &create, nullptr, &messenger_);
}

Status VulkanDriver::create_device(VkPhysicalDevice physical) {
  queue_family_ = compute_family(calls_, physical).value();
  VkPhysicalDeviceVulkan13Features features13{};
  features13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
  features13.synchronization2 = features13.maintenance4 = VK_TRUE;
  VkPhysicalDeviceVulkan12Features features12{};
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features12.pNext = &features13;
  features12.bufferDeviceAddress = features12.timelineSemaphore = VK_TRUE;
  features12.shaderInt8 = features12.storageBuffer8BitAccess = VK_TRUE;
  VkPhysicalDeviceVulkan11Features features11{};
  features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  features11.pNext = &features12;
  features11.storageBuffer16BitAccess = VK_TRUE;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &features11;
  features.features.shaderInt16 = features.features.shaderInt64 = VK_TRUE;
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = queue_family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  uint32_t count = 0;
  calls_.EnumerateDeviceExtensionProperties(physical, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  calls_.EnumerateDeviceExtensionProperties(physical, nullptr, &count, extensions.data());
  const char* const calibrated = VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME;
  const bool calibrates = std::ranges::any_of(extensions, [&](const VkExtensionProperties& extension) {
    return std::strcmp(static_cast<const char*>(extension.extensionName), calibrated) == 0;
  });
  VkDeviceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  create.pNext = &features;
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queue;
  create.enabledExtensionCount = calibrates ? 1 : 0;
  create.ppEnabledExtensionNames = &calibrated;
  const VkResult result = calls_.CreateDevice(physical, &create, nullptr, &device_);
  if (result != VK_SUCCESS) return failed("vkCreateDevice", result).with_context(gpu_.name);
  const auto find = [&](auto& call, const char* name) {
    call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(calls_.GetDeviceProcAddr(device_, name));
  };
#define FOLIOT_FIND(name) find(calls_.name, "vk" #name);
  FOLIOT_VULKAN_DEVICE_CALLS(FOLIOT_FIND)
#undef FOLIOT_FIND
  if (calibrates) find(calls_.GetCalibratedTimestampsEXT, "vkGetCalibratedTimestampsEXT");
  calls_.GetDeviceQueue(device_, queue_family_, 0, &queue_);
  VkPhysicalDeviceMaintenance3Properties limits{};
  limits.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &limits;
  calls_.GetPhysicalDeviceProperties2(physical, &properties);
  allocation_bytes_max_ = limits.maxMemoryAllocationSize;
  nanoseconds_per_tick_ = properties.properties.limits.timestampPeriod;
  return {};
}

Status VulkanDriver::create_shaders() {
  for (size_t i = 0; i < kShaderCount; ++i) {
    const std::span<const uint32_t> code = shader_code(static_cast<Shader>(i));
    VkShaderModuleCreateInfo create{};
    create.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    create.codeSize = code.size_bytes();
    create.pCode = code.data();
    const VkResult result = calls_.CreateShaderModule(device_, &create, nullptr, &modules_[i]);
    if (result != VK_SUCCESS) return failed("vkCreateShaderModule", result);
  }
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
  VkPipelineLayoutCreateInfo layout{};
  layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &range;
  VkResult result = calls_.CreatePipelineLayout(device_, &layout, nullptr, &layout_);
  if (result != VK_SUCCESS) return failed("vkCreatePipelineLayout", result);
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = queue_family_;
  result = calls_.CreateCommandPool(device_, &pool, nullptr, &warm_up_pool_);
  if (result != VK_SUCCESS) return failed("vkCreateCommandPool", result);
  VkCommandBufferAllocateInfo buffer{};
  buffer.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  buffer.commandPool = warm_up_pool_;
  buffer.commandBufferCount = 1;
  result = calls_.AllocateCommandBuffers(device_, &buffer, &warm_up_buffer_);
  if (result != VK_SUCCESS) return failed("vkAllocateCommandBuffers", result);
  VkSemaphoreTypeCreateInfo timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  timeline.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo semaphore{};
  semaphore.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  semaphore.pNext = &timeline;
  result = calls_.CreateSemaphore(device_, &semaphore, nullptr, &warm_up_done_);
  return result == VK_SUCCESS ? Status() : failed("vkCreateSemaphore", result);
}

void VulkanDriver::calibrate() {
  if (calls_.GetCalibratedTimestampsEXT == nullptr) return;
  std::array<VkCalibratedTimestampInfoEXT, 2> infos{};
  for (VkCalibratedTimestampInfoEXT& info : infos) info.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT;
  infos[0].timeDomain = VK_TIME_DOMAIN_DEVICE_EXT;
  infos[1].timeDomain = VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT;
  std::array<uint64_t, 2> times{};
  uint64_t deviation = 0;
  const VkResult result = calls_.GetCalibratedTimestampsEXT(device_, 2, infos.data(), times.data(), &deviation);
  if (result != VK_SUCCESS) return;
  calibrated_ticks_ = times[0];
  calibrated_nanoseconds_ = static_cast<int64_t>(times[1]);
}

TimePoint VulkanDriver::host_time(uint64_t ticks) const {
  const auto since = static_cast<double>(static_cast<int64_t>(ticks - calibrated_ticks_)) * nanoseconds_per_tick_;
  return TimePoint::from_nanoseconds(calibrated_nanoseconds_ + static_cast<int64_t>(since));
}

Result<VulkanMemory> VulkanDriver::allocate(uint64_t bytes, std::string_view purpose) {
  VulkanMemory memory{.bytes = std::max<uint64_t>(bytes, 64)};
  const auto refuse = [&](std::string_view why) {
    free(memory);
    return Status::resource_exhausted(fmt::format("'{}' has not {} for the {} ({}); choose a smaller one", gpu_.name,
                                                  format_bytes(bytes), purpose, why));
  };
  if (memory.bytes > allocation_bytes_max_)
    return refuse(fmt::format("{} at a time", format_bytes(allocation_bytes_max_)));
  VkBufferCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  create.size = memory.bytes;
  create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  VkResult result = calls_.CreateBuffer(device_, &create, nullptr, &memory.buffer);
  if (result != VK_SUCCESS) return refuse(vulkan_error(result));
  VkMemoryRequirements needs{};
  calls_.GetBufferMemoryRequirements(device_, memory.buffer, &needs);
  VkPhysicalDeviceMemoryProperties properties{};
  calls_.GetPhysicalDeviceMemoryProperties(physical_, &properties);
  const std::optional<uint32_t> type = memory_type(properties, needs.memoryTypeBits, needs.size);
  if (!type) return refuse("no memory that the host can write");
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo allocation{};
  allocation.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocation.pNext = &flags;
  allocation.allocationSize = needs.size;
  allocation.memoryTypeIndex = *type;
  result = calls_.AllocateMemory(device_, &allocation, nullptr, &memory.memory);
  if (result != VK_SUCCESS) return refuse(vulkan_error(result));
  result = calls_.BindBufferMemory(device_, memory.buffer, memory.memory, 0);
  void* host = nullptr;
  if (result == VK_SUCCESS) result = calls_.MapMemory(device_, memory.memory, 0, VK_WHOLE_SIZE, 0, &host);
  if (result != VK_SUCCESS) return refuse(vulkan_error(result));
  memory.host = static_cast<std::byte*>(host);
  VkBufferDeviceAddressInfo address{};
  address.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  address.buffer = memory.buffer;
  memory.address = calls_.GetBufferDeviceAddress(device_, &address);
  return memory;
}

void VulkanDriver::free(VulkanMemory& memory) {
  if (memory.buffer != VK_NULL_HANDLE) calls_.DestroyBuffer(device_, memory.buffer, nullptr);
  if (memory.memory != VK_NULL_HANDLE) calls_.FreeMemory(device_, memory.memory, nullptr);
  memory = {};
}

Result<VkPipeline> VulkanDriver::pipeline(Shader shader, const std::array<uint32_t, kShaderConstantsMax>& constants,
                                          VkDeviceAddress nothing) {
  const auto known = pipelines_.find({shader, constants});
  if (known != pipelines_.end()) return known->second;
  std::array<VkSpecializationMapEntry, kShaderConstantsMax> entries{};
  for (uint32_t id = 0; id < entries.size(); ++id) entries.at(id) = {id, 4 * id, 4};
  const VkSpecializationInfo specialization{static_cast<uint32_t>(entries.size()), entries.data(), sizeof(constants),
                                            constants.data()};
  VkComputePipelineCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  create.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  create.stage.module = modules_.at(static_cast<size_t>(shader));
  create.stage.pName = "main";
  create.stage.pSpecializationInfo = &specialization;
  create.layout = layout_;
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result = calls_.CreateComputePipelines(device_, VK_NULL_HANDLE, 1, &create, nullptr, &pipeline);
  if (result != VK_SUCCESS) return failed("vkCreateComputePipelines", result).with_context(to_string(shader));
  pipelines_.emplace(std::pair(shader, constants), pipeline);
  if (gpu_.is_processor) FOLIOT_RETURN_IF_ERROR(warm_up(pipeline, nothing));
  return pipeline;
}

// With no work in the words: every invocation returns at once.
Status VulkanDriver::warm_up(VkPipeline pipeline, VkDeviceAddress nothing) {
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  calls_.BeginCommandBuffer(warm_up_buffer_, &begin);
  std::array<uint32_t, kPushBytes / 4> words{};
  std::memcpy(words.data(), &nothing, sizeof nothing);
  calls_.CmdBindPipeline(warm_up_buffer_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  calls_.CmdPushConstants(warm_up_buffer_, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes, words.data());
  calls_.CmdDispatch(warm_up_buffer_, 1, 1, 1);
  calls_.EndCommandBuffer(warm_up_buffer_);
  VkCommandBufferSubmitInfo buffer{};
  buffer.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO;
  buffer.commandBuffer = warm_up_buffer_;
  VkSemaphoreSubmitInfo done{};
  done.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO;
  done.semaphore = warm_up_done_;
  done.value = ++warm_ups_;
  done.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  VkSubmitInfo2 submission{};
  submission.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2;
  submission.commandBufferInfoCount = 1;
  submission.pCommandBufferInfos = &buffer;
  submission.signalSemaphoreInfoCount = 1;
  submission.pSignalSemaphoreInfos = &done;
  VkResult result = submit(submission);
  VkSemaphoreWaitInfo wait{};
  wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  wait.semaphoreCount = 1;
  wait.pSemaphores = &warm_up_done_;
  wait.pValues = &warm_ups_;
  if (result == VK_SUCCESS)
    result = calls_.WaitSemaphores(device_, &wait, static_cast<uint64_t>(options_.lost_after.nanoseconds()));
  return result == VK_SUCCESS ? Status() : failed("the first run of a shader", result);
}

VkResult VulkanDriver::submit(const VkSubmitInfo2& info) {
  const MutexLock lock(submission_);
  return calls_.QueueSubmit2(queue_, 1, &info, VK_NULL_HANDLE);
}

}  // namespace foliot
