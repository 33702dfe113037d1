// ExecutorDriver: drives one executor in virtual time, as a thread of its own does
// in real time (serving/executor_thread.h).
#ifndef FOLIOT_SIM_EXECUTOR_DRIVER_H_
#define FOLIOT_SIM_EXECUTOR_DRIVER_H_

#include <cstdint>

#include "sim/checker.h"
#include "sim/simulated_device.h"
#include "sim/virtual_loop.h"
#include "worker/executor.h"

namespace foliot {

class ExecutorDriver : public Waker {
 public:
  // The checker is called for each piece of work that is over.
  ExecutorDriver(VirtualLoop& loop, SimulatedDevice& device, Checker& checker, ExecutorKind kind)
      : loop_(loop), device_(device), checker_(checker), kind_(kind) {}
  // Before the first wake().
  void set_executor(Executor& executor) { executor_ = &executor; }

  void wake() override;

  // Stands still, whatever it is doing: for good if the process has died.
  void pause() { paused_ = true; }
  void resume();

 private:
  void poll();
  void finish();

  VirtualLoop& loop_;
  SimulatedDevice& device_;
  Checker& checker_;
  const ExecutorKind kind_;
  Executor* executor_ = nullptr;
  bool running_ = false;
  bool poll_scheduled_ = false;
  bool paused_ = false;
  bool due_ = false;   // to poll or to finish, once it goes on
  uint64_t wait_ = 0;  // counts waits: an alarm of an earlier one is ignored
  // The piece that is running.
  const Action* action_ = nullptr;
  TimePoint start_;
  Status status_;
};

}  // namespace foliot

#endif  // FOLIOT_SIM_EXECUTOR_DRIVER_H_
