// TimerThread: a thread that calls a function at the instant that the function returned last,
// or once it is woken.
//
// Threading: start() and stop() by its owner, wake() by any thread, also before start().
#ifndef FOLIOT_FOUNDATION_PLATFORM_TIMER_THREAD_H_
#define FOLIOT_FOUNDATION_PLATFORM_TIMER_THREAD_H_

#include <atomic>
#include <functional>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/platform/parker.h"
#include "foundation/platform/thread.h"

namespace foliot {

class TimerThread {
 public:
  // With monotonic_now(). Returns when it is called next at the latest; it may be called earlier.
  using Run = std::function<TimePoint(TimePoint now)>;

  TimerThread() = default;
  ~TimerThread() { stop(); }
  TimerThread(const TimerThread&) = delete;
  TimerThread& operator=(const TimerThread&) = delete;

  // Once. Calls `run` at once. Errors: those of Thread::start().
  Status start(const ThreadOptions& options, Run run);
  // Calls it again, soon.
  void wake() { parker_.unpark(); }
  // It is not called from here on. Calling this again does nothing.
  void stop();

 private:
  Parker parker_;
  std::atomic<bool> stopping_{false};
  Run run_;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_TIMER_THREAD_H_
