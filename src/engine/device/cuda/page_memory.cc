#include "engine/device/cuda/page_memory.h"

#include <fmt/format.h>

#include <utility>

#include "foundation/base/check.h"
#include "foundation/base/units.h"

namespace foliot {

Result<std::unique_ptr<GpuPageMemory>> GpuPageMemory::create(CudaDriver& driver, const Gpu& gpu, uint64_t page_bytes,
                                                             uint32_t page_count) {
  if (gpu.block_granularity == 0) {
    return Status::invalid_argument(fmt::format(
        "GPU {} ({}) cannot hold a page cache: it cannot put memory behind addresses", gpu.ordinal, gpu.name));
  }
  if (page_bytes == 0 || page_bytes % gpu.block_granularity != 0) {
    return Status::invalid_argument(fmt::format("pages of {} on GPU {} ({}): choose a multiple of {}",
                                                format_bytes(page_bytes), gpu.ordinal, gpu.name,
                                                format_bytes(gpu.block_granularity)));
  }
  std::unique_ptr<GpuPageMemory> cache(new GpuPageMemory(driver, gpu.ordinal, page_bytes));
  cache->blocks_.reserve(page_count);
  for (uint32_t page = 0; page < page_count; ++page) {
    Result<GpuBlock> block = driver.take(gpu.ordinal, page_bytes);
    if (!block.ok()) {
      return block.status().with_context(fmt::format("page {} of {} x {} on GPU {} ({}): configure fewer pages", page,
                                                     page_count, format_bytes(page_bytes), gpu.ordinal, gpu.name));
    }
    cache->blocks_.push_back(*block);
  }
  return cache;
}

GpuPageMemory::~GpuPageMemory() {
  for (const GpuBlock block : blocks_) driver_.give_back(block);
}

Result<GpuPageTable> GpuPageTable::reserve(GpuPageMemory& cache, uint64_t bytes) {
  const uint64_t pages = (bytes + cache.page_bytes() - 1) / cache.page_bytes();
  if (pages == 0) return GpuPageTable(cache, 0, 0);
  FOLIOT_ASSIGN_OR_RETURN(const GpuAddress address, cache.driver_.reserve(pages * cache.page_bytes()));
  return GpuPageTable(cache, address, pages * cache.page_bytes());
}

GpuPageTable::GpuPageTable(GpuPageTable&& other) noexcept
    : cache_(other.cache_),
      address_(other.address_),
      bytes_(std::exchange(other.bytes_, 0)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)) {}

GpuPageTable::~GpuPageTable() {
  unmap();
  if (bytes_ > 0) cache_->driver_.release(address_, bytes_);
}

Status GpuPageTable::map(std::span<const PageIndex> pages) {
  FOLIOT_CHECK(mapped_bytes_ == 0 && pages.size() * cache_->page_bytes() == bytes_);
  if (bytes_ == 0) return {};
  Status status = put(pages);
  if (!status.ok()) unmap();
  return status;
}

// Access is given once for all pages: it is the dearer of the two calls.
Status GpuPageTable::put(std::span<const PageIndex> pages) {
  for (const PageIndex page : pages) {
    FOLIOT_CHECK(page < cache_->page_count());
    FOLIOT_RETURN_IF_ERROR(cache_->driver_.map(address_ + mapped_bytes_, cache_->page_bytes(), cache_->blocks_[page]));
    mapped_bytes_ += cache_->page_bytes();
  }
  return cache_->driver_.allow(cache_->gpu_, address_, bytes_);
}

void GpuPageTable::unmap() {
  if (mapped_bytes_ > 0) cache_->driver_.unmap(address_, std::exchange(mapped_bytes_, 0));
}

}  // namespace foliot
