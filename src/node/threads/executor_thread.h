// ExecutorThread: drives one executor in real time, on a thread of its own, and as far as it has volunteers also on
// those that wake it: what takes microseconds is performed by the thread that brought it, so that none has to be woken.
//
// EXEC has a thread for each lane interval that its lane leads: what runs on an interval runs
// on its thread, with which the team of threads that computes stays (engine/device/device.h). One of
// them at a time drives the executor. It does so until an EXEC of another width begins, which it
// hands over to that one's thread, and the executor with it; so EXECs of one width in a row
// are not handed over, and a hand-over costs the wake-up of a thread.
//
// One thread at a time has the executor (foundation/platform/baton.h). Another that wakes it meanwhile leaves its work
// to that one, and goes on.
//
// What an executor reports is handled by its thread, as a volunteer of the loop that it reports to, once there is
// nothing to execute (foundation/base/held_wakes.h); by that loop's thread while there is.
#ifndef FOLIOT_NODE_THREADS_EXECUTOR_THREAD_H_
#define FOLIOT_NODE_THREADS_EXECUTOR_THREAD_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/worker/executor.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/platform/baton.h"
#include "foundation/platform/core_set.h"
#include "foundation/platform/parker.h"
#include "foundation/platform/thread.h"

namespace foliot {

// Executors go before whatever else runs on the machine, as far as the kernel lets them: their timing is what all plans
// rest on.
inline constexpr int kExecutorNice = -10;

// What takes so many lanes runs on a thread of its own, which and whose own threads run on
// `cores` (empty: any), once `begin` has run on it.
struct IntervalThread {
  uint32_t lane_count = 1;
  CoreSet cores{};
  int nice = kExecutorNice;
  std::function<void()> begin = [] {};
  // It has turns of the loop that it reports to, once there is nothing to execute. Not for a thread that others may
  // hold up in a turn.
  bool has_turns = true;
};

// Threading: wake() from any thread; the rest belongs to the owner.
class ExecutorThread : public Waker {
 public:
  // `has_volunteers`: a thread that calls wake() performs what is short (Executor::Step::is_short).
  explicit ExecutorThread(bool has_volunteers = false) : has_volunteers_(has_volunteers) {}
  ~ExecutorThread() override { stop(); }

  // Before start(): receives the reason of each failed piece of work, on the executor's
  // thread. Without it they go to standard error.
  void set_failure_log(std::function<void(const std::string& line)> log) { log_ = std::move(log); }
  // `executor` outlives the threads, which take the memory of `node`, as in ThreadOptions. Of
  // several intervals each has another width, and the executor begins actions of no other.
  Status start(Executor& executor, const std::vector<IntervalThread>& intervals = std::vector<IntervalThread>(1),
               std::optional<uint32_t> node = {});
  // Ends after the piece of work under way, if any; what waits, or was not handed over yet, is
  // left. Calling it again does nothing.
  void stop();

  void wake() override;

 private:
  struct Driver {
    uint32_t lane_count = 1;
    bool has_turns = true;
    Parker parker;
    Thread thread;
  };

  void run(Driver& self);
  void wake_driver();
  // The calling thread performs what is short.
  void serve();
  // By a driver, or by a volunteer (null). REQUIRES: the baton, which is put down, or handed over. Returns when there
  // is more to do at the earliest.
  TimePoint drive(Driver* self);
  void perform();
  // Of what has begun.
  Driver& driver_of(const Executor::Step& begun);
  // With the baton.
  void hand_over(Driver& to, const Executor::Step& begun);
  void report_failure(const Status& status) const;

  const bool has_volunteers_;
  std::function<void(const std::string&)> log_;  // empty: standard error
  std::atomic<bool> started_{false};
  std::atomic<bool> stopping_{false};
  std::deque<Driver> drivers_;
  std::atomic<Driver*> driving_{nullptr};  // that begins what comes
  Baton baton_;
  // The baton's holder's.
  Executor* executor_ = nullptr;
  Executor::Step handed_over_;  // run: has begun, and is to be performed
  // To the driver that drives: it has the baton, and `handed_over_`.
  std::atomic<bool> has_handed_over_{false};
};

}  // namespace foliot

#endif  // FOLIOT_NODE_THREADS_EXECUTOR_THREAD_H_
