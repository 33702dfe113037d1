#include "sim/executor_driver.h"

#include <utility>

namespace foliot {

void ExecutorDriver::wake() {
  if (running_ || poll_scheduled_) return;
  poll_scheduled_ = true;
  loop_.at(loop_.now(), [this] { poll(); });
}

void ExecutorDriver::poll() {
  poll_scheduled_ = false;
  if (running_) return;
  due_ = paused_;
  if (paused_) return;
  ++wait_;
  const Executor::Step step = executor_->poll(loop_.now());
  if (step.run) {
    running_ = true;
    action_ = step.action;
    start_ = loop_.now();
    const Duration duration = device_.duration(executor_->name(), *action_, start_);
    status_ = executor_->perform();
    loop_.at(start_ + duration, [this] { finish(); });
  } else if (!step.wake.is_infinite()) {
    loop_.at(step.wake, [this, wait = wait_] {
      if (wait == wait_) wake();
    });
  }
}

void ExecutorDriver::resume() {
  paused_ = false;
  if (!std::exchange(due_, false)) return;
  running_ ? finish() : wake();
}

void ExecutorDriver::finish() {
  due_ = paused_;
  if (paused_) return;
  running_ = false;
  checker_.on_work(kind_, *action_, start_, loop_.now());
  executor_->finish(start_, loop_.now(), status_);
  wake();
}

}  // namespace foliot
