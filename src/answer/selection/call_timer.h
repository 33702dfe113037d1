// CallTimer: the instants at which calls have to be answered with what has come by then.
//
// That is before their deadline by what combining and sending take: a high quantile of what was
// measured, a quarter of the call's time at most; and at least a fiftieth of it, or a twentieth up to
// 0.5 ms.
//
// Threading: any. A lock is held to record or read what was measured, beside that of CallAlarms.
#ifndef FOLIOT_ANSWER_SELECTION_CALL_TIMER_H_
#define FOLIOT_ANSWER_SELECTION_CALL_TIMER_H_

#include <functional>

#include "answer/inference/call_alarms.h"
#include "foundation/base/mutex.h"
#include "foundation/base/tail_window.h"
#include "foundation/base/time.h"

namespace foliot {

// The least time that combining answers and passing them on take of a call's.
Duration least_reserve(TimePoint arrival, TimePoint deadline);

class CallTimer : public CallAlarms {
 public:
  explicit CallTimer(std::function<void(CallId)> expire);

  // When a call of this time has to be answered. REQUIRES: arrival < deadline < infinite.
  TimePoint due(TimePoint arrival, TimePoint deadline) const;
  // An answer that was due then has left now.
  void record(TimePoint due, TimePoint now);

 private:
  mutable Mutex mutex_;
  TailWindow lateness_ GUARDED_BY(mutex_);
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_CALL_TIMER_H_
