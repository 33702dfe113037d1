// CudaDriver: the part of NVIDIA's driver that holding weights in pages needs (CUDA
// Driver API, "Virtual Memory Management"): physical memory and addresses apart, and
// one put behind the other. Nearly one method for each call of the driver's, so that a
// fake can stand in where there is no GPU.
//
// Errors name the call and the driver's own description.
// Threading: any thread.
#ifndef FOLIOT_ENGINE_DEVICE_CUDA_DRIVER_H_
#define FOLIOT_ENGINE_DEVICE_CUDA_DRIVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "foundation/base/status.h"

namespace foliot {

// A place in a GPU's address space.
using GpuAddress = uint64_t;
// Physical memory of a GPU, without an address; 0 is none.
using GpuBlock = uint64_t;

struct Gpu {
  uint32_t ordinal = 0;  // as the driver counts what CUDA_VISIBLE_DEVICES leaves
  std::string name;
  uint32_t capability_major = 0;
  uint32_t capability_minor = 0;
  uint32_t multiprocessors = 0;
  uint64_t memory_bytes = 0;
  // Blocks are multiples of this many bytes; 0: this GPU cannot put memory behind
  // addresses, and so cannot hold a page cache.
  uint64_t block_granularity = 0;
};

class CudaDriver {
 public:
  virtual ~CudaDriver() = default;

  // Errors: kUnavailable if the driver finds none or may not use them.
  virtual Result<std::vector<Gpu>> gpus() = 0;

  // `bytes` is a multiple of the GPU's block_granularity, here and below.
  // Errors: kResourceExhausted.
  virtual Result<GpuBlock> take(uint32_t gpu, uint64_t bytes) = 0;
  // REQUIRES: behind no address.
  virtual void give_back(GpuBlock block) = 0;

  // Addresses with nothing behind them. Errors: kResourceExhausted.
  virtual Result<GpuAddress> reserve(uint64_t bytes) = 0;
  // REQUIRES: the whole of what was reserved, with nothing behind it.
  virtual void release(GpuAddress address, uint64_t bytes) = 0;

  // Puts the block behind addresses that have nothing behind them yet. Nothing may
  // read or write there before allow().
  virtual Status map(GpuAddress address, uint64_t bytes, GpuBlock block) = 0;
  virtual Status allow(uint32_t gpu, GpuAddress address, uint64_t bytes) = 0;
  // REQUIRES: whole blocks are behind these addresses, and nothing on the GPU uses them.
  virtual void unmap(GpuAddress address, uint64_t bytes) = 0;
};

// NVIDIA's. Errors: kUnavailable if this machine has none, if it is too old, or if
// Foliot was built without CUDA's headers.
Result<std::unique_ptr<CudaDriver>> open_cuda_driver();

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CUDA_DRIVER_H_
