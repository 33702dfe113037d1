// Executor: one kind of work on one device (Clockwork, section 5.2), as a state
// machine. Its driver, a thread in real time (executor_thread.h) or the simulator's
// event loop in virtual time, repeats:
//
//   step = executor.poll(now)
//   if step.run: perform() it, or let its simulated duration pass; finish(...)
//   else:        wait until step.wake or until the executor's Waker is called
//
// Threading: poll(), perform(), finish() belong to one thread at a time.
#ifndef FOLIOT_ENGINE_WORKER_EXECUTOR_H_
#define FOLIOT_ENGINE_WORKER_EXECUTOR_H_

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/action.h"

namespace foliot {

// Called when an executor has new work; from any thread, must not block.
class Waker {
 public:
  virtual ~Waker() = default;
  virtual void wake() = 0;
};

class Executor {
 public:
  struct Step {
    bool run = false;                // a piece of work has begun: perform it and finish()
    TimePoint wake;                  // !run: nothing to do before this instant
    const Action* action = nullptr;  // run: what it is part of, valid until finish()
    bool is_short = false;           // run: it takes microseconds, less than to wake a thread for it
  };

  virtual ~Executor() = default;
  // "load", "input", "exec", "output".
  virtual const char* name() const = 0;
  // Accepts new work, refuses what is too late, begins at most one piece.
  // REQUIRES: no piece is under way.
  virtual Step poll(TimePoint now) = 0;
  // Does the piece that has begun, on the device; blocks for as long as it takes.
  virtual Status perform() = 0;
  // Reports the outcome of the piece.
  virtual void finish(TimePoint start, TimePoint end, const Status& status) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_WORKER_EXECUTOR_H_
