// PreparedPlan: a plan as command buffers, recorded before it serves: one of the whole plan, and one of each operator,
// of which a range is run.
//
// What differs from run to run stands in a block of memory at a fixed address (VulkanRunBlock), so that nothing is
// recorded again.
#ifndef FOLIOT_ENGINE_DEVICE_VULKAN_PREPARED_PLAN_H_
#define FOLIOT_ENGINE_DEVICE_VULKAN_PREPARED_PLAN_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/device/plan.h"
#include "engine/device/vulkan/driver.h"
#include "engine/device/vulkan/hazards.h"
#include "foundation/base/status.h"

namespace foliot {

// As the shaders read it (shaders/common.glsl): by place; of the weights, the address of their pages' table.
struct VulkanRunBlock {
  std::array<VkDeviceAddress, 4> bases{};
};

// The dispatches with the barriers that they need, each within an operator's bounds.
std::vector<Recorded> with_barriers(std::span<const Dispatch> dispatches);

class PreparedPlan {
 public:
  // `block`: the address of the VulkanRunBlock of all runs. Errors: kInvalidArgument naming the operator.
  static Result<std::unique_ptr<PreparedPlan>> create(std::shared_ptr<VulkanDriver> driver, const Plan& plan,
                                                      uint64_t page_bytes, VkDeviceAddress block);
  ~PreparedPlan();
  PreparedPlan(const PreparedPlan&) = delete;
  PreparedPlan& operator=(const PreparedPlan&) = delete;

  uint32_t operator_count() const { return static_cast<uint32_t>(operators_.size()); }
  VkCommandBuffer whole() const { return whole_; }
  std::span<const VkCommandBuffer> operators() const { return operators_; }

 private:
  explicit PreparedPlan(std::shared_ptr<VulkanDriver> driver) : driver_(std::move(driver)) {}
  Status allocate(size_t operator_count);
  Status record(VkCommandBuffer buffer, std::span<const Recorded> recording, uint64_t page_bytes,
                VkDeviceAddress block);

  std::shared_ptr<VulkanDriver> driver_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer whole_ = VK_NULL_HANDLE;
  std::vector<VkCommandBuffer> operators_;
};

// All memory of shaders before this is seen by those behind it.
void record_barrier(const VulkanCalls& calls, VkCommandBuffer buffer);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_VULKAN_PREPARED_PLAN_H_
