// AnswerPath: how long an answer takes from the controller's last word until it leaves
// for the client: in a cluster the way from the controller and what the outputs need
// longer, and then an I/O thread's turn. A high quantile of what was measured of the
// last answers, by which requests have to be ready earlier than their clients need them.
//
// Threading: any thread. record() never waits: what two threads measure at once is taken
// from one of them.
#ifndef FOLIOT_ANSWER_MODEL_CALLS_ANSWER_PATH_H_
#define FOLIOT_ANSWER_MODEL_CALLS_ANSWER_PATH_H_

#include <atomic>
#include <cstdint>

#include "foundation/base/mutex.h"
#include "foundation/base/tail_window.h"
#include "foundation/base/time.h"

namespace foliot {

class AnswerPath {
 public:
  AnswerPath();

  // An answer leaves, so long after the controller's last word. Refusals count only
  // where nothing has been `served` for a while.
  void record(Duration measured, bool served, TimePoint now);
  Duration length() const { return Duration::nanoseconds(length_.load(std::memory_order_relaxed)); }

 private:
  void update() REQUIRES(mutex_);

  std::atomic<int64_t> length_;
  Mutex mutex_;
  TailWindow window_ GUARDED_BY(mutex_);
  TimePoint refusals_from_ GUARDED_BY(mutex_);
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_MODEL_CALLS_ANSWER_PATH_H_
