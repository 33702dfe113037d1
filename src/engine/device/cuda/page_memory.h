// GpuPageMemory: a page cache in GPU memory: all blocks taken once, each as large as a
// page, and put behind the addresses of whatever program LOAD gives them to. Addresses
// of a program's weights stay the same however often its pages change, so a CUDA graph
// captured with them stays valid over UNLOAD and LOAD.
//
// The same as engine/device/cpu/host_memory.h for the CPU.
#ifndef FOLIOT_ENGINE_DEVICE_CUDA_PAGE_MEMORY_H_
#define FOLIOT_ENGINE_DEVICE_CUDA_PAGE_MEMORY_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/device/cuda/driver.h"
#include "engine/device/device.h"
#include "foundation/base/status.h"

namespace foliot {

// Threading: pages are given out by the LOAD executor's thread.
class GpuPageMemory {
 public:
  // `driver` must outlive the memory. Errors: kInvalidArgument if the GPU cannot
  // hold pages, or none of this size; kResourceExhausted if there is not enough,
  // and then nothing is kept.
  static Result<std::unique_ptr<GpuPageMemory>> create(CudaDriver& driver, const Gpu& gpu, uint64_t page_bytes,
                                                       uint32_t page_count);
  ~GpuPageMemory();
  GpuPageMemory(const GpuPageMemory&) = delete;
  GpuPageMemory& operator=(const GpuPageMemory&) = delete;

  uint64_t page_bytes() const { return page_bytes_; }
  uint32_t page_count() const { return static_cast<uint32_t>(blocks_.size()); }

 private:
  friend class GpuPageTable;
  GpuPageMemory(CudaDriver& driver, uint32_t gpu, uint64_t page_bytes)
      : driver_(driver), gpu_(gpu), page_bytes_(page_bytes) {}

  CudaDriver& driver_;
  uint32_t gpu_;
  uint64_t page_bytes_;
  std::vector<GpuBlock> blocks_;
};

// One program's range of addresses. Without pages, touching it is an error of the GPU.
class GpuPageTable {
 public:
  // Reserves addresses for `bytes`, rounded up to whole pages. `cache` must outlive
  // the table. Errors: kResourceExhausted.
  static Result<GpuPageTable> reserve(GpuPageMemory& cache, uint64_t bytes);
  GpuPageTable(GpuPageTable&& other) noexcept;
  GpuPageTable& operator=(GpuPageTable&&) = delete;
  ~GpuPageTable();

  // All or nothing. REQUIRES: no pages yet; as many as the range has, each within
  // the cache and in no other table.
  Status map(std::span<const PageIndex> pages);
  // Gives the pages back, if there are any. REQUIRES: nothing on the GPU uses them.
  void unmap();
  GpuAddress address() const { return address_; }
  uint64_t bytes() const { return bytes_; }

 private:
  GpuPageTable(GpuPageMemory& cache, GpuAddress address, uint64_t bytes)
      : cache_(&cache), address_(address), bytes_(bytes) {}
  Status put(std::span<const PageIndex> pages);

  GpuPageMemory* cache_;
  GpuAddress address_;
  uint64_t bytes_;
  uint64_t mapped_bytes_ = 0;  // from the start of the range
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CUDA_PAGE_MEMORY_H_
