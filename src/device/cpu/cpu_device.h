// The CPU as a device, over oneDNN with user-managed memory and scratchpad.
#ifndef FOLIOT_DEVICE_CPU_CPU_DEVICE_H_
#define FOLIOT_DEVICE_CPU_CPU_DEVICE_H_

#include <cstdint>
#include <memory>

#include "device/device.h"

namespace foliot {

struct CpuDeviceOptions {
  // Threads that one EXEC uses (OpenMP). Belongs to the thread that calls run().
  uint32_t threads = 1;
  // Lock device memory into RAM. If the limit on locked memory forbids it,
  // allocate() goes on without and `memory_locked()` says so.
  bool lock_memory = true;
};

class CpuDevice : public Device {
 public:
  virtual bool memory_locked() const = 0;
};

std::unique_ptr<CpuDevice> make_cpu_device(const CpuDeviceOptions& options = {});

}  // namespace foliot

#endif  // FOLIOT_DEVICE_CPU_CPU_DEVICE_H_
