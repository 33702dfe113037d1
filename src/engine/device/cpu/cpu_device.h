// CpuDevice: the CPU as a device, over oneDNN with user-managed memory and scratchpad.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_CPU_DEVICE_H_
#define FOLIOT_ENGINE_DEVICE_CPU_CPU_DEVICE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "engine/device/device.h"

namespace foliot {

struct CpuDeviceOptions {
  // Threads that one EXEC on all lanes uses (OpenMP). They belong to the thread that calls
  // run() and inherit the cores that it may run on.
  uint32_t threads = 1;
  // Each with an equal share of them; divides `threads`.
  uint32_t lanes = 1;
  // Lock device memory into RAM. If the limit on locked memory forbids it,
  // allocate() goes on without and `memory_locked()` says so.
  bool lock_memory = true;
  // How much larger grow() may make io cache and workspaces, each. Takes addresses only.
  uint64_t growth_bytes_max = 0;
};

class CpuDevice : public Device {
 public:
  virtual bool memory_locked() const = 0;
  // Makes io cache and workspaces larger where they are, for a program that needs more;
  // less than there is changes nothing. Belongs to the thread that calls preload();
  // programs run meanwhile. Errors: kResourceExhausted, and what there was stays.
  // REQUIRES: allocate() was called.
  virtual Status grow(uint64_t io_cache_bytes, uint64_t workspace_bytes) = 0;
};

std::unique_ptr<CpuDevice> make_cpu_device(const CpuDeviceOptions& options = {});

// The threads of the CpuDevice with this fingerprint; nullopt: it is not one of a CpuDevice.
std::optional<uint32_t> threads_of(std::string_view fingerprint);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_CPU_DEVICE_H_
