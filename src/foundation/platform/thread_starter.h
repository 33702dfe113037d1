// ThreadStarter: a thread that starts others for its callers.
//
// A thread, and a process, inherit the priority of the thread that starts them, and without
// the right to it (CAP_SYS_NICE) never get a better one: what a background thread starts
// stays in the background. What this starts has the priority of the thread that made this.
//
// Threading: any thread may call start(); calls are served one after the other.
#ifndef FOLIOT_FOUNDATION_PLATFORM_THREAD_STARTER_H_
#define FOLIOT_FOUNDATION_PLATFORM_THREAD_STARTER_H_

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/platform/thread.h"

namespace foliot {

class ThreadStarter {
 public:
  // Errors: Thread::start()'s.
  static Result<std::unique_ptr<ThreadStarter>> make();
  // REQUIRES: no call of start() is under way.
  ~ThreadStarter();
  ThreadStarter(const ThreadStarter&) = delete;
  ThreadStarter& operator=(const ThreadStarter&) = delete;

  // Thread::start() on the thread of this.
  Result<Thread> start(const ThreadOptions& options, std::function<void()> body);

 private:
  struct Order {
    const ThreadOptions& options;
    std::function<void()> body;
    std::optional<Result<Thread>> started{};
  };

  ThreadStarter() = default;
  void run();

  Mutex mutex_;
  Condition changed_;
  std::deque<Order*> orders_ GUARDED_BY(mutex_);  // at most one of each calling thread
  bool stopping_ GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_THREAD_STARTER_H_
