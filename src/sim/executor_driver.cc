#include "sim/executor_driver.h"

namespace foliot {

void ExecutorDriver::wake() {
  if (running_ || poll_scheduled_) return;
  poll_scheduled_ = true;
  loop_.at(loop_.now(), [this] { poll(); });
}

void ExecutorDriver::poll() {
  poll_scheduled_ = false;
  if (running_) return;
  ++wait_;
  const Executor::Step step = executor_->poll(loop_.now());
  if (step.run) {
    running_ = true;
    const TimePoint start = loop_.now();
    const TimePoint end = start + device_.duration(executor_->name(), *step.action, start);
    const Status status = executor_->perform();
    loop_.at(end, [this, action = *step.action, start, status] {
      running_ = false;
      watch_(executor_->name(), action, start, loop_.now());
      executor_->finish(start, loop_.now(), status);
      wake();
    });
  } else if (!step.wake.is_infinite()) {
    loop_.at(step.wake, [this, wait = wait_] {
      if (wait == wait_) wake();
    });
  }
}

}  // namespace foliot
