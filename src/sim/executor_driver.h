// ExecutorDriver: drives one executor in virtual time, as a thread of its own does
// in real time (app/executor_thread.h).
#ifndef FOLIOT_SIM_EXECUTOR_DRIVER_H_
#define FOLIOT_SIM_EXECUTOR_DRIVER_H_

#include <cstdint>
#include <functional>

#include "sim/simulated_device.h"
#include "sim/virtual_loop.h"
#include "worker/executor.h"

namespace foliot {

class ExecutorDriver : public Waker {
 public:
  // Called when a piece of work is over: the executor's name, the action, when it
  // began and ended.
  using Watch = std::function<void(const char*, const Action&, TimePoint, TimePoint)>;

  ExecutorDriver(VirtualLoop& loop, SimulatedDevice& device, Watch watch)
      : loop_(loop), device_(device), watch_(std::move(watch)) {}
  // Before the first wake().
  void set_executor(Executor& executor) { executor_ = &executor; }

  void wake() override;

 private:
  void poll();

  VirtualLoop& loop_;
  SimulatedDevice& device_;
  Watch watch_;
  Executor* executor_ = nullptr;
  bool running_ = false;
  bool poll_scheduled_ = false;
  uint64_t wait_ = 0;  // counts waits: an alarm of an earlier one is ignored
};

}  // namespace foliot

#endif  // FOLIOT_SIM_EXECUTOR_DRIVER_H_
