// ExecutorThread: drives one executor in real time, on a thread of its own. Writes the
// reason of a failed piece of work to standard error.
#ifndef FOLIOT_SERVING_EXECUTOR_THREAD_H_
#define FOLIOT_SERVING_EXECUTOR_THREAD_H_

#include <atomic>
#include <optional>
#include <string>

#include "base/status.h"
#include "platform/core_set.h"
#include "platform/parker.h"
#include "platform/thread.h"
#include "worker/executor.h"

namespace foliot {

// Threading: wake() from any thread; the rest belongs to the owner.
class ExecutorThread : public Waker {
 public:
  ExecutorThread() = default;
  ~ExecutorThread() override { stop(); }

  // `executor` outlives the thread, which and whose own threads run on `cores` (empty: any)
  // and take the memory of `node`, as in ThreadOptions.
  Status start(Executor& executor, const CoreSet& cores = {}, std::optional<uint32_t> node = {});
  // Ends after the piece of work under way, if any; what waits is left.
  void stop();

  void wake() override { parker_.unpark(); }

 private:
  void run(Executor& executor);

  Parker parker_;
  std::atomic<bool> stopping_{false};
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_SERVING_EXECUTOR_THREAD_H_
