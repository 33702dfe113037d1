// ExecQueue: runs prepared plans on a device, one at a time: one submission, and one wait for its end.
#ifndef FOLIOT_ENGINE_DEVICE_VULKAN_EXEC_QUEUE_H_
#define FOLIOT_ENGINE_DEVICE_VULKAN_EXEC_QUEUE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/device/vulkan/driver.h"
#include "engine/device/vulkan/prepared_plan.h"
#include "engine/device/vulkan/vulkan_device.h"
#include "foundation/base/status.h"
#include "foundation/core/exec_part.h"

namespace foliot {

// Threading: run() and times() belong to the thread of EXEC.
class ExecQueue {
 public:
  // For programs of up to `pages_max` pages. Errors: kResourceExhausted, or the driver's.
  static Result<std::unique_ptr<ExecQueue>> create(std::shared_ptr<VulkanDriver> driver, uint32_t pages_max);
  ~ExecQueue();
  ExecQueue(const ExecQueue&) = delete;
  ExecQueue& operator=(const ExecQueue&) = delete;

  // Of the block that command buffers are recorded with.
  VkDeviceAddress block_address() const { return memory_.address; }
  // Of a plan, in one submission.
  static constexpr uint32_t kOperatorsMax = 16'384;

  // Blocks until the device has ended. `pages`: the addresses of the weights' pages. Errors: kUnavailable for a device
  // that is lost, from then on.
  Status run(const PreparedPlan& plan, OperatorRange range, VulkanRunBlock block,
             std::span<const VkDeviceAddress> pages);
  VulkanExecTimes times() const { return times_; }

 private:
  explicit ExecQueue(std::shared_ptr<VulkanDriver> driver) : driver_(std::move(driver)) {}
  Status create_ends();
  Status record_ends();
  Status lost(VkResult result);
  void read_times();

  const std::shared_ptr<VulkanDriver> driver_;
  VulkanMemory memory_;  // the block, then the table of pages
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer begin_ = VK_NULL_HANDLE, end_ = VK_NULL_HANDLE;
  VkQueryPool timestamps_ = VK_NULL_HANDLE;
  VkSemaphore done_ = VK_NULL_HANDLE;
  uint64_t value_ = 0;  // of the semaphore after what was submitted
  std::vector<VkCommandBufferSubmitInfo> buffers_;
  VulkanExecTimes times_;
  bool lost_ = false;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_VULKAN_EXEC_QUEUE_H_
