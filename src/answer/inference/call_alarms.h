// CallAlarms: an instant for each of many calls under way. Once it has come, a task is posted to the mailbox of the
// call, so that what a call waits for need not know of time.
//
// Bounded by the calls that are under way: each has one instant, until it is removed or has come.
//
// Threading: any. A lock is held for an insertion, a removal or the posting of what is due.
#ifndef FOLIOT_ANSWER_INFERENCE_CALL_ALARMS_H_
#define FOLIOT_ANSWER_INFERENCE_CALL_ALARMS_H_

#include <functional>
#include <map>
#include <utility>

#include "answer/inference/inference.h"
#include "answer/inference/mailbox.h"
#include "foundation/base/mutex.h"
#include "foundation/base/time.h"

namespace foliot {

class CallAlarms {
 public:
  // `expire`: by the thread of a call's mailbox, once its instant has come.
  explicit CallAlarms(std::function<void(CallId)> expire) : expire_(std::move(expire)) {}
  CallAlarms(const CallAlarms&) = delete;
  CallAlarms& operator=(const CallAlarms&) = delete;

  // Before any call: `set_timer` is called, by any thread, with the instant at which run() has to be called, instead of
  // what it was called with before. It must not call back.
  void use_timer(std::function<void(TimePoint)> set_timer) { set_timer_ = std::move(set_timer); }

  // REQUIRES: the mailbox exists until remove(), or until run() is called no more.
  void add(CallId call, TimePoint due, Mailbox& mailbox);
  // Ignored if it was due. The timer is left as it is until another call is added.
  void remove(CallId call, TimePoint due);
  // Posts what is due to its mailbox. Returns what it sets the timer to.
  TimePoint run(TimePoint now);

 private:
  void set(TimePoint due) REQUIRES(mutex_);

  const std::function<void(CallId)> expire_;
  std::function<void(TimePoint)> set_timer_ = [](TimePoint) {};
  Mutex mutex_;
  std::map<std::pair<TimePoint, CallId>, Mailbox*> calls_ GUARDED_BY(mutex_);
  TimePoint set_ GUARDED_BY(mutex_) = TimePoint::infinite_future();  // what the timer was set to
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_CALL_ALARMS_H_
