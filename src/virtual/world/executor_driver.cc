#include "virtual/world/executor_driver.h"

#include <algorithm>
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
  const TimePoint now = clock_.local(loop_.now());
  const Executor::Step step = executor_->poll(now);
  if (step.run) {
    running_ = true;
    action_ = step.action;
    start_ = now;
    const Duration duration = device_.duration(executor_->name(), *action_, start_);
    status_ = executor_->perform();
    if (shared_ != nullptr && kind_ == ExecutorKind::kExec) {
      shared_->begin(device_.loads(*action_, duration), [this] { finish(); });
    } else {
      loop_.at(loop_.now() + duration, [this] { finish(); });
    }
  } else if (!step.wake.is_infinite()) {
    loop_.at(std::max(clock_.instant(step.wake), loop_.now()), [this, wait = wait_] {
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
  const TimePoint now = clock_.local(loop_.now());
  observer_.on_work(kind_, *action_, start_, now);
  executor_->finish(start_, now, status_);
  wake();
}

}  // namespace foliot
