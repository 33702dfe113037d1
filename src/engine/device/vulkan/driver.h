// VulkanDriver: a device that Vulkan's loader found, opened: its queue, memory and pipelines. The library is looked
// for when it is opened, so that one program serves machines with and without Vulkan.
#ifndef FOLIOT_ENGINE_DEVICE_VULKAN_DRIVER_H_
#define FOLIOT_ENGINE_DEVICE_VULKAN_DRIVER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/vulkan/calls.h"
#include "engine/device/vulkan/dispatch.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

// A device as the loader lists it.
struct VulkanGpu {
  std::string name;
  std::string driver;  // "llvmpipe Mesa 22.3.6 (LLVM 15.0.6)"
  uint64_t memory_bytes = 0;
  bool is_processor = false;  // a driver that computes on the CPU
  std::string lacks;          // what it needs and has not; empty: it can be used
};

struct VulkanOptions {
  // A number of the loader's list, from 0, or a name; empty: the first that is no processor and can be used.
  std::string which;
  // Where the validation layer is installed, it checks all calls, and says what it finds here.
  std::function<void(std::string_view)> on_message{};
  // After which an EXEC is taken for lost, and the device with it: far above the longest.
  Duration lost_after = Duration::seconds(20);
};

// A buffer that the device knows by its address and the host by a pointer.
struct VulkanMemory {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  uint64_t bytes = 0;
  VkDeviceAddress address = 0;
  std::byte* host = nullptr;
};

// What a process that may open only named files needs, of what is there: folders of drivers, and devices that get
// requests (ioctl).
struct VulkanFiles {
  std::vector<std::filesystem::path> readable;
  std::vector<std::filesystem::path> controlled;
};
VulkanFiles vulkan_files();

// Errors: kUnavailable if there is no loader, or no driver; what to do stands in the message.
Result<std::vector<VulkanGpu>> vulkan_gpus();

// Threading: pipeline() belongs to one thread at a time; submit() to any.
class VulkanDriver {
 public:
  // Errors: kUnavailable as vulkan_gpus(); kNotFound for no such device, with a list of those that there are;
  // kUnimplemented if it lacks what the shaders need.
  static Result<std::shared_ptr<VulkanDriver>> open(const VulkanOptions& options);
  ~VulkanDriver();
  VulkanDriver(const VulkanDriver&) = delete;
  VulkanDriver& operator=(const VulkanDriver&) = delete;

  const VulkanOptions& options() const { return options_; }
  const VulkanGpu& gpu() const { return gpu_; }
  const VulkanCalls& calls() const { return calls_; }
  VkDevice device() const { return device_; }
  uint32_t queue_family() const { return queue_family_; }
  VkPipelineLayout layout() const { return layout_; }
  uint64_t allocation_bytes_max() const { return allocation_bytes_max_; }

  // Memory of the device that the host can write, or, where there is none, memory of the host. Errors:
  // kResourceExhausted with what it is for and how much.
  Result<VulkanMemory> allocate(uint64_t bytes, std::string_view purpose);
  void free(VulkanMemory& memory);

  // Of a shader with these constants; made once. A driver that compiles when a shader first runs runs it here, on
  // nothing, `nothing` being an address of 32 bytes. Errors: the driver's.
  Result<VkPipeline> pipeline(Shader shader, const std::array<uint32_t, kShaderConstantsMax>& constants,
                              VkDeviceAddress nothing);

  // One submission. A queue has one caller at a time: the lock is held as long as the call takes, and no other part
  // submits while models only run.
  VkResult submit(const VkSubmitInfo2& info);
  // The device's time as the host's monotonic clock has it.
  TimePoint host_time(uint64_t ticks) const;

 private:
  explicit VulkanDriver(const VulkanOptions& options) : options_(options) {}
  Status open_device();
  Status create_device(VkPhysicalDevice physical);
  Status create_shaders();
  void calibrate();
  void say_messages();
  Status warm_up(VkPipeline pipeline, VkDeviceAddress nothing);

  const VulkanOptions options_;
  VulkanGpu gpu_;
  void* library_ = nullptr;
  VulkanCalls calls_;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ PT_GUARDED_BY(submission_) = VK_NULL_HANDLE;
  uint32_t queue_family_ = 0;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  std::array<VkShaderModule, kShaderCount> modules_{};
  std::map<std::pair<Shader, std::array<uint32_t, kShaderConstantsMax>>, VkPipeline> pipelines_;
  VkCommandPool warm_up_pool_ = VK_NULL_HANDLE;
  VkCommandBuffer warm_up_buffer_ = VK_NULL_HANDLE;
  VkSemaphore warm_up_done_ = VK_NULL_HANDLE;
  uint64_t warm_ups_ = 0;
  uint64_t allocation_bytes_max_ = 0;
  double nanoseconds_per_tick_ = 1;
  uint64_t calibrated_ticks_ = 0;
  int64_t calibrated_nanoseconds_ = 0;
  Mutex submission_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_VULKAN_DRIVER_H_
