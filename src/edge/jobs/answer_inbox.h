// AnswerInbox: a mailbox whose owner waits for what comes. It must outlive the threads that push to it, which may still
// touch it when the last answer was taken: so runs of jobs borrow one.
#ifndef FOLIOT_EDGE_JOBS_ANSWER_INBOX_H_
#define FOLIOT_EDGE_JOBS_ANSWER_INBOX_H_

#include <cstdint>

#include "answer/inference/mailbox.h"
#include "foundation/base/mutex.h"
#include "foundation/base/time.h"

namespace foliot {

// Threading: one thread waits.
class AnswerInbox {
 public:
  explicit AnswerInbox(uint32_t capacity) : mailbox_(capacity, [this] { wake(); }) {}

  Mailbox& mailbox() { return mailbox_; }
  // Until something came, at most for `timeout`; delivers it.
  void wait(Duration timeout) {
    {
      MutexLock lock(mutex_);
      changed_.wait_for(mutex_, timeout, [this]() REQUIRES(mutex_) { return is_awake_; });
      is_awake_ = false;
    }
    mailbox_.deliver();
  }

 private:
  void wake() {
    const MutexLock lock(mutex_);
    is_awake_ = true;
    changed_.notify_one();
  }

  Mutex mutex_;
  Condition changed_;
  bool is_awake_ GUARDED_BY(mutex_) = false;
  Mailbox mailbox_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_ANSWER_INBOX_H_
