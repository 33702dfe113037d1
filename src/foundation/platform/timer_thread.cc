#include "foundation/platform/timer_thread.h"

#include <fmt/format.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/base/error_text.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

// Of an absolute instant of CLOCK_MONOTONIC; one that has passed is due at once. 0 disarms.
itimerspec setting_of(TimePoint due) {
  itimerspec setting{};
  if (due.is_infinite()) return setting;
  const int64_t nanoseconds = std::max<int64_t>(due.nanoseconds(), 1);
  setting.it_value.tv_sec = nanoseconds / 1'000'000'000;
  setting.it_value.tv_nsec = nanoseconds % 1'000'000'000;
  return setting;
}

}  // namespace

Status TimerThread::start(const ThreadOptions& options, Run run) {
  int timer = -1;
  {
    const MutexLock lock(mutex_);
    timer_ = Descriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
    if (!timer_.is_open()) {
      return Status::resource_exhausted(
          fmt::format("cannot make the timer of thread '{}': {}", options.name, error_text(errno)));
    }
    arm();
    timer = timer_.number();
  }
  run_ = std::move(run);
  FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start(options, [this, timer] {
                            uint64_t times = 0;
                            while (::read(timer, &times, sizeof times) >= 0 || errno == EINTR) {
                              if (stopping_) return;
                              run_(monotonic_now());
                            }
                          }));
  return Status();
}

void TimerThread::set(size_t alarm, TimePoint due) {
  const MutexLock lock(mutex_);
  alarms_[alarm] = due;
  const TimePoint first = std::ranges::min(alarms_);
  if (first == armed_) return;
  armed_ = first;
  if (timer_.is_open()) arm();
}

void TimerThread::arm() {
  const itimerspec setting = setting_of(stopping_ ? TimePoint() : armed_);
  FOLIOT_CHECK(::timerfd_settime(timer_.number(), TFD_TIMER_ABSTIME, &setting, nullptr) == 0);
}

void TimerThread::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    if (timer_.is_open()) arm();
  }
  thread_.join();
}

}  // namespace foliot
