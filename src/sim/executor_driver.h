// ExecutorDriver: drives one executor in virtual time, as a thread of its own does
// in real time (serving/executor_thread.h).
#ifndef FOLIOT_SIM_EXECUTOR_DRIVER_H_
#define FOLIOT_SIM_EXECUTOR_DRIVER_H_

#include <cstdint>

#include "sim/node_clock.h"
#include "sim/simulated_device.h"
#include "sim/virtual_loop.h"
#include "sim/work_observer.h"
#include "worker/executor.h"

namespace foliot {

class ExecutorDriver : public Waker {
 public:
  // `observer` is called for each piece of work that is over. `clock`: of the worker.
  ExecutorDriver(VirtualLoop& loop, SimulatedDevice& device, WorkObserver& observer, ExecutorKind kind,
                 const NodeClock& clock = {})
      : loop_(loop), device_(device), observer_(observer), kind_(kind), clock_(clock) {}
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
  WorkObserver& observer_;
  const ExecutorKind kind_;
  const NodeClock clock_;
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
