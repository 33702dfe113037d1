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

  // Before any call: `wake` is called, by any thread, when run() has to be called earlier than it
  // has said. It must not call back.
  void set_wake(std::function<void()> wake) { wake_ = std::move(wake); }

  // REQUIRES: the mailbox exists until remove(), or until run() is called no more.
  void add(CallId call, TimePoint due, Mailbox& mailbox);
  // Ignored if it was due.
  void remove(CallId call, TimePoint due);
  // Posts what is due to its mailbox. Returns when it has to be called next at the latest; infinite:
  // after the next wake.
  TimePoint run(TimePoint now);

 private:
  const std::function<void(CallId)> expire_;
  std::function<void()> wake_ = [] {};
  Mutex mutex_;
  std::map<std::pair<TimePoint, CallId>, Mailbox*> calls_ GUARDED_BY(mutex_);
  TimePoint runs_at_ GUARDED_BY(mutex_);  // as run() has said; from a wake on until then, long past
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_CALL_ALARMS_H_
