#include "node/threads/executor_thread.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/base/held_wakes.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

// The kernel wakes a sleeper some tens of microseconds late.
constexpr Duration kSpin = Duration::microseconds(50);
// By which a volunteer may be held up.
constexpr int kVolunteerPiecesMax = 4;

}  // namespace

Status ExecutorThread::start(Executor& executor, const std::vector<IntervalThread>& intervals,
                             std::optional<uint32_t> node) {
  executor_ = &executor;
  for (const IntervalThread& interval : intervals) {
    Driver& driver = drivers_.emplace_back();
    driver.lane_count = interval.lane_count;
    driver.has_turns = interval.has_turns;
  }
  driving_.store(&drivers_.front());
  for (size_t i = 0; i < intervals.size(); ++i) {
    Driver& driver = drivers_[i];
    Result<Thread> thread = Thread::start(
        {.name = executor.name(), .cores = intervals[i].cores, .memory_node = node, .nice = intervals[i].nice},
        [this, &driver, begin = intervals[i].begin] {
          begin();
          run(driver);
        });
    if (!thread.ok()) return thread.status();
    driver.thread = std::move(thread).value();
  }
  started_.store(true, std::memory_order_release);
  wake_driver();  // for what was brought before
  return Status();
}

void ExecutorThread::stop() {
  if (stopping_.exchange(true)) return;
  for (Driver& driver : drivers_) driver.parker.unpark();
  for (Driver& driver : drivers_) driver.thread.join();
  if (!started_.load()) return;
  // For good. A volunteer that has it keeps it for microseconds, or hands it over to a thread, which has ended.
  while (!has_handed_over_.load() && !baton_.take()) std::this_thread::yield();
}

void ExecutorThread::wake() { has_volunteers_ ? serve() : wake_driver(); }

void ExecutorThread::wake_driver() {
  if (started_.load(std::memory_order_acquire)) driving_.load(std::memory_order_acquire)->parker.unpark();
}

void ExecutorThread::serve() {
  if (!started_.load(std::memory_order_acquire) || stopping_.load(std::memory_order_relaxed)) return;
  if (baton_.take() && !drive(nullptr).is_infinite()) wake_driver();
}

void ExecutorThread::run(Driver& self) {
  HeldWakes wakes;
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (Driver* const other = driving_.load(std::memory_order_acquire); other != &self) {
      other->parker.unpark();  // this one may have been woken as the one that drove a moment ago
      self.parker.park_until(TimePoint::infinite_future());
      continue;
    }
    TimePoint wake = TimePoint::infinite_future();  // as long as a volunteer has the executor
    if (has_handed_over_.exchange(false, std::memory_order_acquire) || baton_.take()) wake = drive(&self);
    wake.is_infinite() && self.has_turns ? wakes.release() : wakes.wake_held();
    if (driving_.load(std::memory_order_acquire) != &self) continue;
    self.parker.park_until(wake, wake.is_infinite() ? Duration() : kSpin);
  }
}

TimePoint ExecutorThread::drive(Driver* self) {
  Executor::Step step;
  int performed = 0;
  do {
    while (true) {
      if (stopping_.load(std::memory_order_relaxed)) {
        baton_.drop();
        return TimePoint::infinite_future();
      }
      step = handed_over_.run ? std::exchange(handed_over_, Executor::Step()) : executor_->poll(monotonic_now());
      if (!step.run) break;
      const bool is_of_volunteer = self == nullptr && step.is_short;
      if (Driver& driver = driver_of(step); !is_of_volunteer && &driver != self) {
        hand_over(driver, step);
        return TimePoint::infinite_future();
      }
      perform();
      if (is_of_volunteer && ++performed == kVolunteerPiecesMax) {
        baton_.drop();
        return TimePoint();
      }
    }
  } while (!baton_.put_down());
  return step.wake;
}

ExecutorThread::Driver& ExecutorThread::driver_of(const Executor::Step& begun) {
  if (drivers_.size() == 1) return drivers_.front();
  const auto driver = std::ranges::find(drivers_, begun.action->lanes.count, &Driver::lane_count);
  FOLIOT_CHECK(driver != drivers_.end());
  return *driver;
}

void ExecutorThread::hand_over(Driver& to, const Executor::Step& begun) {
  handed_over_ = begun;
  driving_.store(&to, std::memory_order_release);
  has_handed_over_.store(true, std::memory_order_release);
  to.parker.unpark();
}

void ExecutorThread::perform() {
  // What was reported does not wait for an EXEC.
  if (!has_volunteers_) HeldWakes::wake_held_of_this_thread();
  const TimePoint start = monotonic_now();
  const Status status = executor_->perform();
  if (!status.ok()) report_failure(status);
  executor_->finish(start, monotonic_now(), status);
}

void ExecutorThread::report_failure(const Status& status) const {
  const std::string line = fmt::format("{} failed: {}", executor_->name(), status.message());
  log_ ? log_(line) : fmt::print(stderr, "{}\n", line);
}

}  // namespace foliot
