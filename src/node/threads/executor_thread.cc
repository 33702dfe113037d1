#include "node/threads/executor_thread.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

// The kernel wakes a sleeper some tens of microseconds late.
constexpr Duration kSpin = Duration::microseconds(50);

}  // namespace

Status ExecutorThread::start(Executor& executor, const std::vector<IntervalThread>& intervals,
                             std::optional<uint32_t> node) {
  for (const IntervalThread& interval : intervals) drivers_.emplace_back().lane_count = interval.lane_count;
  driving_.store(&drivers_.front());
  for (size_t i = 0; i < intervals.size(); ++i) {
    Driver& driver = drivers_[i];
    Result<Thread> thread = Thread::start(
        {.name = executor.name(), .cores = intervals[i].cores, .memory_node = node, .nice = intervals[i].nice},
        [this, &driver, &executor, begin = intervals[i].begin] {
          begin();
          run(driver, executor);
        });
    if (!thread.ok()) return thread.status();
    driver.thread = std::move(thread).value();
  }
  return Status();
}

void ExecutorThread::stop() {
  stopping_.store(true);
  parker_.unpark();
  for (Driver& driver : drivers_) driver.parker.unpark();
  for (Driver& driver : drivers_) driver.thread.join();
}

void ExecutorThread::report_failure(const Executor& executor, const Status& status) const {
  const std::string line = fmt::format("{} failed: {}", executor.name(), status.message());
  log_ ? log_(line) : fmt::print(stderr, "{}\n", line);
}

void ExecutorThread::run(Driver& self, Executor& executor) {
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (driving_.load(std::memory_order_acquire) != &self) {
      self.parker.park_until(TimePoint::infinite_future());
      continue;
    }
    const Executor::Step step =
        handed_over_.run ? std::exchange(handed_over_, Executor::Step()) : executor.poll(monotonic_now());
    if (!step.run) {
      parker_.park_until(step.wake, step.wake.is_infinite() ? Duration() : kSpin);
    } else if (keeps(self, step)) {
      const TimePoint start = monotonic_now();
      const Status status = executor.perform();
      if (!status.ok()) report_failure(executor, status);
      executor.finish(start, monotonic_now(), status);
    }
  }
}

bool ExecutorThread::keeps(Driver& self, const Executor::Step& begun) {
  if (drivers_.size() == 1 || begun.action->lanes.count == self.lane_count) return true;
  const auto other = std::ranges::find(drivers_, begun.action->lanes.count, &Driver::lane_count);
  FOLIOT_CHECK(other != drivers_.end());
  handed_over_ = begun;
  driving_.store(&*other, std::memory_order_release);
  other->parker.unpark();
  return false;
}

}  // namespace foliot
