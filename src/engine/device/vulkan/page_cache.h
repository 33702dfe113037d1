// VulkanPageCache: pages of equal size in a device's memory, each with an address of its own. No buffer needs to be
// larger than a driver allows, since programs find their pages by a table.
#ifndef FOLIOT_ENGINE_DEVICE_VULKAN_PAGE_CACHE_H_
#define FOLIOT_ENGINE_DEVICE_VULKAN_PAGE_CACHE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/device/device.h"
#include "engine/device/vulkan/driver.h"
#include "foundation/base/status.h"

namespace foliot {

// Threading: fill() belongs to one thread; address() to any.
class VulkanPageCache {
 public:
  // Errors: kResourceExhausted.
  static Result<std::unique_ptr<VulkanPageCache>> create(std::shared_ptr<VulkanDriver> driver, uint64_t page_bytes,
                                                         uint32_t page_count);
  ~VulkanPageCache();
  VulkanPageCache(const VulkanPageCache&) = delete;
  VulkanPageCache& operator=(const VulkanPageCache&) = delete;

  uint64_t page_bytes() const { return page_bytes_; }
  VkDeviceAddress address(PageIndex page) const;
  // Copies the weights into these pages, in order. REQUIRES: as many as they need.
  Status fill(std::span<const PageIndex> pages, WeightsSource& weights);

 private:
  VulkanPageCache(std::shared_ptr<VulkanDriver> driver, uint64_t page_bytes)
      : driver_(std::move(driver)), page_bytes_(page_bytes) {}

  const std::shared_ptr<VulkanDriver> driver_;
  const uint64_t page_bytes_;
  uint32_t page_count_ = 0;
  uint32_t pages_per_block_ = 1;
  std::vector<VulkanMemory> blocks_;  // the last may be smaller
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_VULKAN_PAGE_CACHE_H_
