#include "engine/device/vulkan/exec_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/device/vulkan/instance.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

Status check_made(std::string_view call, VkResult result) {
  if (result == VK_SUCCESS) return {};
  return Status::internal(fmt::format("Vulkan: {} failed: {}", call, vulkan_error(result)));
}

}  // namespace

Result<std::unique_ptr<ExecQueue>> ExecQueue::create(std::shared_ptr<VulkanDriver> driver, uint32_t pages_max) {
  std::unique_ptr<ExecQueue> queue(new ExecQueue(std::move(driver)));
  const uint64_t bytes = sizeof(VulkanRunBlock) + sizeof(VkDeviceAddress) * uint64_t{pages_max};
  FOLIOT_ASSIGN_OR_RETURN(queue->memory_, queue->driver_->allocate(bytes, "table of pages"));
  std::memset(queue->memory_.host, 0, queue->memory_.bytes);
  queue->buffers_.resize(kOperatorsMax + 2);
  for (VkCommandBufferSubmitInfo& buffer : queue->buffers_) buffer.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO;
  FOLIOT_RETURN_IF_ERROR(queue->create_ends());
  FOLIOT_RETURN_IF_ERROR(queue->record_ends());
  return queue;
}

ExecQueue::~ExecQueue() {
  const VulkanCalls& calls = driver_->calls();
  calls.DestroyCommandPool(driver_->device(), pool_, nullptr);
  calls.DestroyQueryPool(driver_->device(), timestamps_, nullptr);
  calls.DestroySemaphore(driver_->device(), done_, nullptr);
  driver_->free(memory_);
}

Status ExecQueue::create_ends() {
  const VulkanCalls& calls = driver_->calls();
  const VkDevice device = driver_->device();
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.queueFamilyIndex = driver_->queue_family();
  FOLIOT_RETURN_IF_ERROR(check_made("vkCreateCommandPool", calls.CreateCommandPool(device, &pool, nullptr, &pool_)));
  std::array<VkCommandBuffer, 2> buffers{};
  VkCommandBufferAllocateInfo allocation{};
  allocation.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocation.commandPool = pool_;
  allocation.commandBufferCount = buffers.size();
  FOLIOT_RETURN_IF_ERROR(
      check_made("vkAllocateCommandBuffers", calls.AllocateCommandBuffers(device, &allocation, buffers.data())));
  begin_ = buffers[0];
  end_ = buffers[1];
  VkQueryPoolCreateInfo queries{};
  queries.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
  queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
  queries.queryCount = 2;
  FOLIOT_RETURN_IF_ERROR(
      check_made("vkCreateQueryPool", calls.CreateQueryPool(device, &queries, nullptr, &timestamps_)));
  VkSemaphoreTypeCreateInfo timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  timeline.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo semaphore{};
  semaphore.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  semaphore.pNext = &timeline;
  return check_made("vkCreateSemaphore", calls.CreateSemaphore(device, &semaphore, nullptr, &done_));
}

// Timestamps around all work, and at the end the results made visible to the host.
Status ExecQueue::record_ends() {
  const VulkanCalls& calls = driver_->calls();
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  FOLIOT_RETURN_IF_ERROR(check_made("vkBeginCommandBuffer", calls.BeginCommandBuffer(begin_, &begin)));
  calls.CmdResetQueryPool(begin_, timestamps_, 0, 2);
  calls.CmdWriteTimestamp2(begin_, VK_PIPELINE_STAGE_2_TOP_OF_PIPE_BIT, timestamps_, 0);
  FOLIOT_RETURN_IF_ERROR(check_made("vkEndCommandBuffer", calls.EndCommandBuffer(begin_)));
  FOLIOT_RETURN_IF_ERROR(check_made("vkBeginCommandBuffer", calls.BeginCommandBuffer(end_, &begin)));
  calls.CmdWriteTimestamp2(end_, VK_PIPELINE_STAGE_2_BOTTOM_OF_PIPE_BIT, timestamps_, 1);
  VkMemoryBarrier2 barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2;
  barrier.srcStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;
  barrier.srcAccessMask = VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT;
  barrier.dstStageMask = VK_PIPELINE_STAGE_2_HOST_BIT;
  barrier.dstAccessMask = VK_ACCESS_2_HOST_READ_BIT;
  VkDependencyInfo dependency{};
  dependency.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO;
  dependency.memoryBarrierCount = 1;
  dependency.pMemoryBarriers = &barrier;
  calls.CmdPipelineBarrier2(end_, &dependency);
  return check_made("vkEndCommandBuffer", calls.EndCommandBuffer(end_));
}

Status ExecQueue::run(const PreparedPlan& plan, OperatorRange range, VulkanRunBlock block,
                      std::span<const VkDeviceAddress> pages) {
  const uint32_t last = std::min(range.last, plan.operator_count());
  FOLIOT_CHECK(range.first <= last && sizeof block + pages.size_bytes() <= memory_.bytes);
  if (lost_) return Status::unavailable("the GPU was lost; start the server again");
  block.bases[static_cast<size_t>(Place::kWeights)] = memory_.address + sizeof block;
  std::memcpy(memory_.host, &block, sizeof block);
  if (!pages.empty()) std::memcpy(memory_.host + sizeof block, pages.data(), pages.size_bytes());
  uint32_t count = 0;
  buffers_[count++].commandBuffer = begin_;
  if (range.first == 0 && last == plan.operator_count()) {
    buffers_[count++].commandBuffer = plan.whole();
  } else {
    for (uint32_t i = range.first; i < last; ++i) buffers_[count++].commandBuffer = plan.operators()[i];
  }
  buffers_[count++].commandBuffer = end_;
  VkSemaphoreSubmitInfo done{};
  done.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO;
  done.semaphore = done_;
  done.value = ++value_;
  done.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  VkSubmitInfo2 submission{};
  submission.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2;
  submission.commandBufferInfoCount = count;
  submission.pCommandBufferInfos = buffers_.data();
  submission.signalSemaphoreInfoCount = 1;
  submission.pSignalSemaphoreInfos = &done;
  VkResult result = driver_->submit(submission);
  if (result != VK_SUCCESS) return lost(result);
  VkSemaphoreWaitInfo wait{};
  wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  wait.semaphoreCount = 1;
  wait.pSemaphores = &done_;
  wait.pValues = &value_;
  result = driver_->calls().WaitSemaphores(driver_->device(), &wait,
                                           static_cast<uint64_t>(driver_->options().lost_after.nanoseconds()));
  if (result != VK_SUCCESS) return lost(result);
  read_times();
  return {};
}

// What did not end may still write: nothing is given to the device again.
Status ExecQueue::lost(VkResult result) {
  lost_ = true;
  return Status::unavailable(
      fmt::format("the GPU '{}' was lost ({}); start the server again", driver_->gpu().name, vulkan_error(result)));
}

void ExecQueue::read_times() {
  std::array<uint64_t, 2> ticks{};
  const VkResult result =
      driver_->calls().GetQueryPoolResults(driver_->device(), timestamps_, 0, 2, sizeof ticks, ticks.data(),
                                           sizeof(uint64_t), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
  if (result == VK_SUCCESS) times_ = {driver_->host_time(ticks[0]), driver_->host_time(ticks[1])};
}

}  // namespace foliot
