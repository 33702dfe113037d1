#include "engine/device/vulkan/page_cache.h"

#include <algorithm>

#include "foundation/base/check.h"

namespace foliot {

Result<std::unique_ptr<VulkanPageCache>> VulkanPageCache::create(std::shared_ptr<VulkanDriver> driver,
                                                                 uint64_t page_bytes, uint32_t page_count) {
  constexpr uint64_t kBlockBytes = uint64_t{1} << 30;
  std::unique_ptr<VulkanPageCache> cache(new VulkanPageCache(std::move(driver), page_bytes));
  const uint64_t block_bytes = std::min(kBlockBytes, cache->driver_->allocation_bytes_max());
  cache->page_count_ = page_count;
  cache->pages_per_block_ = static_cast<uint32_t>(std::max<uint64_t>(block_bytes / page_bytes, 1));
  for (uint32_t first = 0; first < page_count; first += cache->pages_per_block_) {
    const uint64_t pages = std::min(cache->pages_per_block_, page_count - first);
    FOLIOT_ASSIGN_OR_RETURN(const VulkanMemory block, cache->driver_->allocate(pages * page_bytes, "page cache"));
    cache->blocks_.push_back(block);
  }
  return cache;
}

VulkanPageCache::~VulkanPageCache() {
  for (VulkanMemory& block : blocks_) driver_->free(block);
}

VkDeviceAddress VulkanPageCache::address(PageIndex page) const {
  FOLIOT_CHECK(page < page_count_);
  return blocks_[page / pages_per_block_].address + page % pages_per_block_ * page_bytes_;
}

Status VulkanPageCache::fill(std::span<const PageIndex> pages, WeightsSource& weights) {
  const uint64_t bytes = weights.bytes();
  FOLIOT_CHECK(pages.size() == (bytes + page_bytes_ - 1) / page_bytes_);
  for (size_t i = 0; i < pages.size(); ++i) {
    FOLIOT_CHECK(pages[i] < page_count_);
    std::byte* const to = blocks_[pages[i] / pages_per_block_].host + pages[i] % pages_per_block_ * page_bytes_;
    const uint64_t offset = i * page_bytes_;
    FOLIOT_RETURN_IF_ERROR(weights.read(offset, {to, std::min(page_bytes_, bytes - offset)}));
  }
  return {};
}

}  // namespace foliot
