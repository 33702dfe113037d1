#include "answer/inference/call_alarms.h"

namespace foliot {

void CallAlarms::add(CallId call, TimePoint due, Mailbox& mailbox) {
  const MutexLock lock(mutex_);
  calls_.emplace(std::pair(due, call), &mailbox);
  if (due < set_ || calls_.size() == 1) set(due);
}

void CallAlarms::remove(CallId call, TimePoint due) {
  const MutexLock lock(mutex_);
  calls_.erase({due, call});
}

TimePoint CallAlarms::run(TimePoint now) {
  const MutexLock lock(mutex_);
  while (!calls_.empty() && calls_.begin()->first.first <= now) {
    const auto first = calls_.begin();
    // Under the lock: its mailbox is there while the call has not been removed.
    first->second->post([this, call = first->first.second] { expire_(call); });
    calls_.erase(first);
  }
  set(calls_.empty() ? TimePoint::infinite_future() : calls_.begin()->first.first);
  return set_;
}

// Under the lock, so that the timer is set to what was decided last.
void CallAlarms::set(TimePoint due) {
  set_ = due;
  set_timer_(due);
}

}  // namespace foliot
