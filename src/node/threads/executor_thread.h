// ExecutorThread: drives one executor in real time, on a thread of its own.
//
// EXEC has a thread for each lane interval that its lane leads: what runs on an interval runs
// on its thread, with which the team of threads that computes stays (engine/device/device.h). One of
// them at a time has the executor. It keeps it until an EXEC of another width begins, which it
// hands over to that one's thread, and the executor with it; so EXECs of one width in a row
// are not handed over, and a hand-over costs the wake-up of a thread.
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
};

// Threading: wake() from any thread; the rest belongs to the owner.
class ExecutorThread : public Waker {
 public:
  ExecutorThread() = default;
  ~ExecutorThread() override { stop(); }

  // Before start(): receives the reason of each failed piece of work, on the executor's
  // thread. Without it they go to standard error.
  void set_failure_log(std::function<void(const std::string& line)> log) { log_ = std::move(log); }
  // `executor` outlives the threads, which take the memory of `node`, as in ThreadOptions. Of
  // several intervals each has another width, and the executor begins actions of no other.
  Status start(Executor& executor, const std::vector<IntervalThread>& intervals = std::vector<IntervalThread>(1),
               std::optional<uint32_t> node = {});
  // Ends after the piece of work under way, if any; what waits, or was not handed over yet, is
  // left.
  void stop();

  void wake() override { parker_.unpark(); }

 private:
  struct Driver {
    uint32_t lane_count = 1;
    Parker parker;  // while another has the executor
    Thread thread;
  };
  void run(Driver& self, Executor& executor);
  void report_failure(const Executor& executor, const Status& status) const;
  // False: it was handed over, with the executor.
  bool keeps(Driver& self, const Executor::Step& begun);

  std::function<void(const std::string&)> log_;  // empty: standard error
  Parker parker_;                                // of the driver that has the executor
  std::atomic<bool> stopping_{false};
  std::deque<Driver> drivers_;
  // That has the executor, and with it what follows.
  std::atomic<Driver*> driving_{nullptr};
  Executor::Step handed_over_;  // run: has begun, and is to be performed
};

}  // namespace foliot

#endif  // FOLIOT_NODE_THREADS_EXECUTOR_THREAD_H_
