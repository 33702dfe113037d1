#include "engine/device/vulkan/prepared_plan.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "engine/device/vulkan/instance.h"
#include "engine/device/vulkan/operator_dispatches.h"

namespace foliot {
namespace {

Status check_call(std::string_view call, VkResult result) {
  if (result == VK_SUCCESS) return {};
  return Status::internal(fmt::format("Vulkan: {} failed: {}", call, vulkan_error(result)));
}

Result<std::vector<Dispatch>> dispatches_of(const Operator& operation, const Plan& plan) {
  if (operation.kernel != kernel_of(operation.kind)) {
    return Status::invalid_argument(fmt::format("there is no kernel '{}'", operation.kernel));
  }
  return operator_dispatches({operation, plan.tensors});
}

}  // namespace

std::vector<Recorded> with_barriers(std::span<const Dispatch> dispatches) {
  std::vector<Recorded> recording;
  UnfinishedWork work;
  for (const Dispatch& dispatch : dispatches) {
    if (work.conflicts(dispatch)) {
      recording.push_back({});
      work.clear();
    }
    work.add(dispatch);
    recording.push_back({&dispatch});
  }
  return recording;
}

void record_barrier(const VulkanCalls& calls, VkCommandBuffer buffer) {
  VkMemoryBarrier2 barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2;
  barrier.srcStageMask = barrier.dstStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;
  barrier.srcAccessMask = VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_2_SHADER_STORAGE_READ_BIT | VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT;
  VkDependencyInfo dependency{};
  dependency.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO;
  dependency.memoryBarrierCount = 1;
  dependency.pMemoryBarriers = &barrier;
  calls.CmdPipelineBarrier2(buffer, &dependency);
}

Result<std::unique_ptr<PreparedPlan>> PreparedPlan::create(std::shared_ptr<VulkanDriver> driver, const Plan& plan,
                                                           uint64_t page_bytes, VkDeviceAddress block) {
  std::unique_ptr<PreparedPlan> prepared(new PreparedPlan(std::move(driver)));
  FOLIOT_RETURN_IF_ERROR(prepared->allocate(plan.operators.size()));
  std::vector<Dispatch> all;
  for (size_t i = 0; i < plan.operators.size(); ++i) {
    const Operator& operation = plan.operators[i];
    const auto name = [&] {
      return fmt::format("operator '{}' ({}, batch size {})", operation.name, to_string(operation.kind),
                         plan.batch_size);
    };
    Result<std::vector<Dispatch>> dispatches = dispatches_of(operation, plan);
    if (!dispatches.ok()) return Status::invalid_argument(dispatches.status().message()).with_context(name());
    const std::vector<Recorded> recording = with_barriers(*dispatches);
    FOLIOT_RETURN_IF_ERROR(
        prepared->record(prepared->operators_[i], recording, page_bytes, block).with_context(name()));
    for (Dispatch& dispatch : *dispatches) all.push_back(std::move(dispatch));
  }
  FOLIOT_RETURN_IF_ERROR(prepared->record(prepared->whole_, with_barriers(all), page_bytes, block));
  return prepared;
}

PreparedPlan::~PreparedPlan() { driver_->calls().DestroyCommandPool(driver_->device(), pool_, nullptr); }

Status PreparedPlan::allocate(size_t operator_count) {
  const VulkanCalls& calls = driver_->calls();
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.queueFamilyIndex = driver_->queue_family();
  FOLIOT_RETURN_IF_ERROR(
      check_call("vkCreateCommandPool", calls.CreateCommandPool(driver_->device(), &pool, nullptr, &pool_)));
  std::vector<VkCommandBuffer> buffers(operator_count + 1);
  VkCommandBufferAllocateInfo allocation{};
  allocation.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocation.commandPool = pool_;
  allocation.commandBufferCount = static_cast<uint32_t>(buffers.size());
  FOLIOT_RETURN_IF_ERROR(check_call("vkAllocateCommandBuffers",
                                    calls.AllocateCommandBuffers(driver_->device(), &allocation, buffers.data())));
  whole_ = buffers.back();
  buffers.pop_back();
  operators_ = std::move(buffers);
  return {};
}

Status PreparedPlan::record(VkCommandBuffer buffer, std::span<const Recorded> recording, uint64_t page_bytes,
                            VkDeviceAddress block) {
  if (const std::optional<std::string> hazard = find_hazard(recording)) {
    return Status::internal(fmt::format("{} may run beside what it conflicts with", *hazard));
  }
  const VulkanCalls& calls = driver_->calls();
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  FOLIOT_RETURN_IF_ERROR(check_call("vkBeginCommandBuffer", calls.BeginCommandBuffer(buffer, &begin)));
  // Behind whatever was submitted before it.
  record_barrier(calls, buffer);
  for (const Recorded& entry : recording) {
    if (entry.dispatch == nullptr) {
      record_barrier(calls, buffer);
      continue;
    }
    std::array<uint32_t, kShaderConstantsMax> constants = entry.dispatch->constants;
    constants[0] = static_cast<uint32_t>(std::countr_zero(page_bytes));
    FOLIOT_ASSIGN_OR_RETURN(const VkPipeline pipeline, driver_->pipeline(entry.dispatch->shader, constants, block));
    std::array<uint32_t, 2 + kShaderWordsMax> pushed{};
    std::memcpy(pushed.data(), &block, sizeof block);
    std::memcpy(&pushed[2], entry.dispatch->words.data(), sizeof entry.dispatch->words);
    calls.CmdBindPipeline(buffer, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    calls.CmdPushConstants(buffer, driver_->layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof pushed, pushed.data());
    calls.CmdDispatch(buffer, entry.dispatch->groups_x, entry.dispatch->groups_y, 1);
  }
  return check_call("vkEndCommandBuffer", calls.EndCommandBuffer(buffer));
}

}  // namespace foliot
