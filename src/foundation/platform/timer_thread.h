// TimerThread: a thread that calls a function once an instant has come that one of its alarms was set to.
//
// To set an alarm wakes no thread: the kernel has the earliest instant (timerfd), and wakes the thread then.
//
// Threading: start() and stop() by its owner, set() by any thread, also before start(). A lock is held for a system
// call.
#ifndef FOLIOT_FOUNDATION_PLATFORM_TIMER_THREAD_H_
#define FOLIOT_FOUNDATION_PLATFORM_TIMER_THREAD_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <vector>

#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/platform/descriptor.h"
#include "foundation/platform/thread.h"

namespace foliot {

class TimerThread {
 public:
  // With monotonic_now(), on the thread. Now and then it is called though no alarm is due. One that was has to be set
  // again.
  using Run = std::function<void(TimePoint now)>;

  explicit TimerThread(size_t alarms = 1) : alarms_(alarms, TimePoint::infinite_future()) {}
  ~TimerThread() { stop(); }
  TimerThread(const TimerThread&) = delete;
  TimerThread& operator=(const TimerThread&) = delete;

  // Once. Errors: those of Thread::start(); kResourceExhausted without a descriptor.
  Status start(const ThreadOptions& options, Run run);
  // Instead of what the alarm was set to; infinite: it never is due.
  void set(size_t alarm, TimePoint due);
  // Nothing is called from here on. Calling this again does nothing.
  void stop();

 private:
  // REQUIRES: the timer is open.
  void arm() REQUIRES(mutex_);

  Mutex mutex_;
  std::vector<TimePoint> alarms_ GUARDED_BY(mutex_);
  TimePoint armed_ GUARDED_BY(mutex_) = TimePoint::infinite_future();  // as the kernel knows it, or was due
  Descriptor timer_ GUARDED_BY(mutex_);
  std::atomic<bool> stopping_{false};
  Run run_;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_TIMER_THREAD_H_
