#include "engine/device/vulkan/vulkan_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "engine/device/plan_check.h"
#include "engine/device/vulkan/exec_queue.h"
#include "engine/device/vulkan/instance.h"
#include "engine/device/vulkan/lowering.h"
#include "engine/device/vulkan/page_cache.h"
#include "engine/device/vulkan/prepared_plan.h"
#include "foundation/base/check.h"
#include "foundation/core/lanes.h"

namespace foliot {
namespace {

// Raised whenever lowering gives other plans for the same graph.
constexpr int kVulkanLoweringVersion = 1;
constexpr uint32_t kVulkanLanes = 1;
constexpr std::string_view kDenseLayout = "dense";

// All that a device has in memory, and its executables with it.
struct VulkanMemories {
  explicit VulkanMemories(std::shared_ptr<VulkanDriver> of) : driver(std::move(of)) {}
  ~VulkanMemories() {
    driver->free(io_cache);
    for (VulkanMemory& workspace : workspaces) driver->free(workspace);
  }
  VulkanMemories(const VulkanMemories&) = delete;
  VulkanMemories& operator=(const VulkanMemories&) = delete;

  const std::shared_ptr<VulkanDriver> driver;
  std::unique_ptr<VulkanPageCache> page_cache;
  VulkanMemory io_cache;
  std::vector<VulkanMemory> workspaces;  // by context
  uint64_t workspace_bytes = 0;
  std::unique_ptr<ExecQueue> queue;
};

class VulkanExecutable : public Executable {
 public:
  VulkanExecutable(std::shared_ptr<VulkanMemories> memory, std::span<const Plan> plans,
                   std::shared_ptr<WeightsSource> weights)
      : memory_(std::move(memory)), plans_(plans), weights_(std::move(weights)), ready_(plans.size()) {}

  Status prepare(uint32_t plan, uint32_t width) override {
    FOLIOT_CHECK(plan < plans_.size() && width == kVulkanLanes);
    if (ready_[plan] != nullptr) return {};
    if (plans_[plan].operators.size() > ExecQueue::kOperatorsMax) {
      return Status::invalid_argument(fmt::format("a plan of {} operators; {} are possible",
                                                  plans_[plan].operators.size(), ExecQueue::kOperatorsMax));
    }
    FOLIOT_ASSIGN_OR_RETURN(ready_[plan],
                            PreparedPlan::create(memory_->driver, plans_[plan], memory_->page_cache->page_bytes(),
                                                 memory_->queue->block_address()));
    return {};
  }

  Status load(std::span<const PageIndex> pages) override {
    FOLIOT_CHECK(!loaded_);
    FOLIOT_RETURN_IF_ERROR(memory_->page_cache->fill(pages, *weights_));
    addresses_.clear();
    for (const PageIndex page : pages) addresses_.push_back(memory_->page_cache->address(page));
    loaded_ = true;
    return {};
  }

  void unload() override {
    FOLIOT_CHECK(loaded_);
    loaded_ = false;
  }

  Status run(const DeviceRun& run) override {
    FOLIOT_CHECK(loaded_ && run.input_offset % kTensorAlignment == 0 && run.output_offset % kTensorAlignment == 0);
    FOLIOT_CHECK(run.plan < ready_.size() && is_lane_interval(run.part.lanes, kVulkanLanes));
    FOLIOT_CHECK(run.part.context < memory_->workspaces.size());
    FOLIOT_CHECK(ready_[run.plan] != nullptr);
    VulkanRunBlock block;
    block.bases[static_cast<size_t>(Place::kWorkspace)] = memory_->workspaces[run.part.context].address;
    block.bases[static_cast<size_t>(Place::kInput)] = memory_->io_cache.address + run.input_offset;
    block.bases[static_cast<size_t>(Place::kOutput)] = memory_->io_cache.address + run.output_offset;
    return memory_->queue->run(*ready_[run.plan], run.part.range, block, addresses_);
  }

 private:
  const std::shared_ptr<VulkanMemories> memory_;
  const std::span<const Plan> plans_;
  const std::shared_ptr<WeightsSource> weights_;
  std::vector<std::unique_ptr<PreparedPlan>> ready_;  // by plan; nullptr: not prepared
  std::vector<VkDeviceAddress> addresses_;            // of the pages, in order
  bool loaded_ = false;
};

class DriverDevice : public VulkanDevice {
 public:
  explicit DriverDevice(std::shared_ptr<VulkanDriver> driver) : driver_(std::move(driver)) {}

  std::string kind() const override { return vulkan_kind(driver_->gpu().name); }
  std::string fingerprint() const override {
    return fmt::format("{} lowering={}", driver_->gpu().driver, kVulkanLoweringVersion);
  }
  bool runs(const std::string& fingerprint) const override { return fingerprint == this->fingerprint(); }
  Status supports_products(DataType type) const override {
    return Status::unimplemented(fmt::format("Vulkan's shaders compute in FP32 only, not in {}", to_string(type)));
  }
  std::unique_ptr<Device> another() const override { return make_vulkan_device(driver_); }
  std::vector<std::string> layouts(std::span<const Graph> graphs) const override {
    (void)graphs;
    return {std::string(kDenseLayout)};
  }
  Result<LoweredProgram> lower(std::span<const Graph> graphs, const std::string& layout) override;
  Status allocate(const DeviceMemory& memory) override;
  Result<std::unique_ptr<Executable>> preload(std::span<const Plan> plans,
                                              std::shared_ptr<WeightsSource> weights) override;

  void copy_to_io(uint64_t offset, std::span<const std::byte> from) override {
    FOLIOT_CHECK(offset <= memory_->io_cache.bytes && from.size() <= memory_->io_cache.bytes - offset);
    if (!from.empty()) std::memcpy(memory_->io_cache.host + offset, from.data(), from.size());
  }
  void copy_from_io(uint64_t offset, std::span<std::byte> to) override {
    FOLIOT_CHECK(offset <= memory_->io_cache.bytes && to.size() <= memory_->io_cache.bytes - offset);
    if (!to.empty()) std::memcpy(to.data(), memory_->io_cache.host + offset, to.size());
  }
  VulkanExecTimes exec_times() const override { return memory_->queue->times(); }

 private:
  const std::shared_ptr<VulkanDriver> driver_;
  std::shared_ptr<VulkanMemories> memory_;
};

Result<LoweredProgram> DriverDevice::lower(std::span<const Graph> graphs, const std::string& layout) {
  FOLIOT_CHECK(layout == kDenseLayout);
  LoweredProgram program;
  PackedConstants constants;
  for (const Graph& graph : graphs) {
    FOLIOT_ASSIGN_OR_RETURN(Plan plan, lower_for_vulkan(graph, constants));
    program.plans.push_back(std::move(plan));
  }
  program.constants = std::move(constants).take();
  return program;
}

Status DriverDevice::allocate(const DeviceMemory& memory) {
  FOLIOT_CHECK(memory_ == nullptr && memory.contexts > 0);
  if (!std::has_single_bit(memory.page_bytes) || memory.page_bytes > uint64_t{1} << 30) {
    return Status::invalid_argument(fmt::format(
        "a page of {} bytes: Vulkan's page cache wants a power of two up to 1 GiB; choose another --page-size",
        memory.page_bytes));
  }
  auto taken = std::make_shared<VulkanMemories>(driver_);
  FOLIOT_ASSIGN_OR_RETURN(taken->io_cache, driver_->allocate(memory.io_cache_bytes, "io cache"));
  // No client may read what another program left in memory.
  std::memset(taken->io_cache.host, 0, taken->io_cache.bytes);
  for (uint32_t context = 0; context < memory.contexts; ++context) {
    FOLIOT_ASSIGN_OR_RETURN(const VulkanMemory workspace, driver_->allocate(memory.workspace_bytes, "workspace"));
    taken->workspaces.push_back(workspace);
  }
  taken->workspace_bytes = memory.workspace_bytes;
  FOLIOT_ASSIGN_OR_RETURN(taken->page_cache, VulkanPageCache::create(driver_, memory.page_bytes, memory.page_count));
  FOLIOT_ASSIGN_OR_RETURN(taken->queue, ExecQueue::create(driver_, memory.page_count));
  memory_ = std::move(taken);
  return {};
}

Result<std::unique_ptr<Executable>> DriverDevice::preload(std::span<const Plan> plans,
                                                          std::shared_ptr<WeightsSource> weights) {
  FOLIOT_CHECK(memory_ != nullptr && weights != nullptr);
  for (const Plan& plan : plans) {
    if (plan.workspace_bytes > memory_->workspace_bytes)
      return Status::resource_exhausted(
          fmt::format("batch size {} needs a workspace of {} bytes, and the device has {}; "
                      "configure a larger workspace",
                      plan.batch_size, plan.workspace_bytes, memory_->workspace_bytes));
    FOLIOT_RETURN_IF_ERROR(check_plan(plan, weights->bytes(), vulkan_layout_size));
  }
  return std::unique_ptr<Executable>(std::make_unique<VulkanExecutable>(memory_, plans, std::move(weights)));
}

}  // namespace

std::string vulkan_kind(std::string_view name) {
  constexpr size_t kNameBytesMax = 48;
  std::string kind = "vulkan:";
  for (const char c : name.substr(0, kNameBytesMax)) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
    if (is_plain) kind += c;
    if (!is_plain && kind.back() != '-' && kind.back() != ':') kind += '-';
  }
  if (kind.back() == '-') kind.pop_back();
  return kind;
}

std::unique_ptr<VulkanDevice> make_vulkan_device(std::shared_ptr<VulkanDriver> driver) {
  return std::make_unique<DriverDevice>(std::move(driver));
}

}  // namespace foliot
