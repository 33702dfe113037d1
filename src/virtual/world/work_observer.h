// WorkObserver: sees each piece of work of a device's executors when it is over.
#ifndef FOLIOT_VIRTUAL_WORLD_WORK_OBSERVER_H_
#define FOLIOT_VIRTUAL_WORLD_WORK_OBSERVER_H_

#include <cstddef>
#include <cstdint>

#include "foundation/base/time.h"
#include "foundation/core/action.h"

namespace foliot {

// The executors of a device.
enum class ExecutorKind : uint8_t { kLoad, kInput, kExec, kOutput, kLargeOutput };
inline constexpr size_t kExecutorKinds = 5;

class WorkObserver {
 public:
  virtual ~WorkObserver() = default;
  // Times are on the clock of the worker.
  virtual void on_work(ExecutorKind executor, const Action& action, TimePoint start, TimePoint end) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_WORLD_WORK_OBSERVER_H_
