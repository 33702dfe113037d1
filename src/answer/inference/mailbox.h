// Mailbox: calls that are done, and now and then a task, on their way from other
// threads to one I/O thread. Delivery happens on the I/O thread, so that no other
// thread waits while responses are written.
//
// Threading: push() by one thread, the controller's loop; post() and close() by
// any; deliver() by the I/O thread.
#ifndef FOLIOT_ANSWER_INFERENCE_MAILBOX_H_
#define FOLIOT_ANSWER_INFERENCE_MAILBOX_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "foundation/base/mutex.h"
#include "foundation/base/spsc_ring.h"

namespace foliot {

// What a mailbox brings to its I/O thread, such as an answer.
class Delivery {
 public:
  virtual ~Delivery() = default;
  // On the I/O thread, once; may destroy this.
  virtual void deliver() = 0;
};

class Mailbox {
 public:
  // `wake` makes the I/O thread call deliver() soon; it is called from the
  // threads that push and post, at most once per delivery. `capacity`: rows of calls in
  // flight at most, so that the ring can never be full: a call brings its answer and, if
  // it has several rows, its first refusal.
  Mailbox(uint32_t capacity, std::function<void()> wake);

  // Never blocks, never allocates.
  void push(Delivery& delivery);
  // Dropped once the mailbox is closed. Rare: it takes a lock.
  void post(std::function<void()> task);
  // No task is delivered and no wake-up follows from here on.
  void close();

  void deliver();

 private:
  void wake_once();

  SpscRing<Delivery*> done_;
  std::function<void()> wake_;
  std::atomic<bool> awake_{false};
  Mutex mutex_;
  // One per load or unload in progress, or call whose time is up, and few others.
  std::vector<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_MAILBOX_H_
