// ExecutorDriver: drives one executor in virtual time, as a thread of its own does
// in real time (node/threads/executor_thread.h).
#ifndef FOLIOT_VIRTUAL_WORLD_EXECUTOR_DRIVER_H_
#define FOLIOT_VIRTUAL_WORLD_EXECUTOR_DRIVER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/worker/executor.h"
#include "engine/worker/worker.h"
#include "virtual/world/node_clock.h"
#include "virtual/world/shared_execs.h"
#include "virtual/world/simulated_device.h"
#include "virtual/world/virtual_loop.h"
#include "virtual/world/work_observer.h"

namespace foliot {

class ExecutorDriver : public Waker {
 public:
  // `observer` is called for each piece of work that is over. `clock`: of the worker.
  // `shared`: what slows EXECs down that run at once; null: nothing.
  ExecutorDriver(VirtualLoop& loop, SimulatedDevice& device, WorkObserver& observer, ExecutorKind kind,
                 const NodeClock& clock = {}, SharedExecs* shared = nullptr)
      : loop_(loop), device_(device), observer_(observer), kind_(kind), clock_(clock), shared_(shared) {}
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
  SharedExecs* const shared_;
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

// The drivers of all executors of a worker.
class WorkerDrivers {
 public:
  WorkerDrivers(VirtualLoop& loop, SimulatedDevice& device, WorkObserver& observer, uint32_t lane_count,
                const NodeClock& clock = {})
      : shared_(loop) {
    SharedExecs* const shared = device.has_resources() ? &shared_ : nullptr;
    // In the order of Worker::executors().
    for (const ExecutorKind kind :
         {ExecutorKind::kLoad, ExecutorKind::kInput, ExecutorKind::kExec, ExecutorKind::kOutput}) {
      drivers_.push_back(std::make_unique<ExecutorDriver>(loop, device, observer, kind, clock, shared));
    }
    for (uint32_t lane = 1; lane < lane_count; ++lane) {
      drivers_.push_back(std::make_unique<ExecutorDriver>(loop, device, observer, ExecutorKind::kExec, clock, shared));
    }
    drivers_.push_back(
        std::make_unique<ExecutorDriver>(loop, device, observer, ExecutorKind::kLargeOutput, clock, shared));
  }
  WorkerWakers wakers() {
    WorkerWakers wakers{*drivers_[0], *drivers_[1], *drivers_[2], *drivers_[3]};
    for (size_t i = 4; i + 1 < drivers_.size(); ++i) wakers.other_lanes.push_back(drivers_[i].get());
    wakers.large_output = drivers_.back().get();
    return wakers;
  }
  // Before the first wake().
  void drive(Worker& worker) {
    const std::vector<Executor*> executors = worker.executors();
    for (size_t i = 0; i < executors.size(); ++i) drivers_[i]->set_executor(*executors[i]);
  }
  void pause() {
    for (const auto& driver : drivers_) driver->pause();
  }
  void resume() {
    for (const auto& driver : drivers_) driver->resume();
  }

 private:
  SharedExecs shared_;
  std::vector<std::unique_ptr<ExecutorDriver>> drivers_;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_WORLD_EXECUTOR_DRIVER_H_
