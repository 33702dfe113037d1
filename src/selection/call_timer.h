// CallTimer: the instants at which calls have to be answered with what has come by then.
//
// That is before their deadline by what combining and sending take: a high quantile of what was
// measured, a quarter of the call's time at most; and at least a fiftieth of it, or a twentieth up to
// 0.5 ms.
//
// Bounded by the calls that are under way: each has one instant, until it is removed or due.
//
// Threading: any. A lock is held for an insertion, a removal or the posting of what is due.
#ifndef FOLIOT_SELECTION_CALL_TIMER_H_
#define FOLIOT_SELECTION_CALL_TIMER_H_

#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "base/tail_window.h"
#include "base/time.h"
#include "inference/inference.h"
#include "inference/mailbox.h"

namespace foliot {

// The least time that combining answers and passing them on take of a call's.
Duration least_reserve(TimePoint arrival, TimePoint deadline);

class CallTimer {
 public:
  // `expire`: by the thread of a call's mailbox, once its instant has come.
  explicit CallTimer(std::function<void(CallId)> expire);
  CallTimer(const CallTimer&) = delete;
  CallTimer& operator=(const CallTimer&) = delete;

  // Before any call: `wake` is called, by any thread, when run() has to be called earlier than it
  // has said. It must not call back.
  void set_wake(std::function<void()> wake) { wake_ = std::move(wake); }

  // When a call of this time has to be answered. REQUIRES: arrival < deadline < infinite.
  TimePoint due(TimePoint arrival, TimePoint deadline) const;
  // REQUIRES: the mailbox exists until remove(), or until run() is called no more.
  void add(CallId call, TimePoint due, Mailbox& mailbox);
  // Ignored if it was due.
  void remove(CallId call, TimePoint due);
  // Posts what is due to its mailbox. Returns when it has to be called next at the latest; infinite:
  // after the next wake.
  TimePoint run(TimePoint now);
  // An answer that was due then has left now.
  void record(TimePoint due, TimePoint now);

 private:
  const std::function<void(CallId)> expire_;
  std::function<void()> wake_ = [] {};
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::pair<TimePoint, CallId>, Mailbox*> calls_;
  TimePoint runs_at_;  // as run() has said; from a wake on until then, long past
  TailWindow lateness_;
};

}  // namespace foliot

#endif  // FOLIOT_SELECTION_CALL_TIMER_H_
