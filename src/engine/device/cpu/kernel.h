// Kernel: one operator of a plan, made ready by Executable::prepare().
#ifndef FOLIOT_ENGINE_DEVICE_CPU_KERNEL_H_
#define FOLIOT_ENGINE_DEVICE_CPU_KERNEL_H_

#include <cstddef>
#include <span>

#include "foundation/base/status.h"
#include "foundation/core/action.h"

namespace foliot {

// The address of each tensor of the plan, by TensorIndex, as of this run.
using Addresses = std::span<std::byte* const>;

class Kernel {
 public:
  virtual ~Kernel() = default;
  // No allocation by this code, no lock. Threading: belongs to the thread of one lane
  // interval.
  virtual Status run(Addresses addresses) = 0;
  // Of the last run: the rows whose input it refused. nullptr: it refuses none. The set stays
  // where it is.
  virtual const RowSet* failed_rows() const { return nullptr; }
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_KERNEL_H_
