// EventInbox<Event>: the bounded queue of an EventLoop. It exists before its loop, so
// that parts that send to each other in a circle can be made one after another.
//
// Events of one poster stay in order. Posting allocates nothing (unless moving an Event
// does) and makes a system call only when the loop is asleep, and then later where the
// poster holds its wake-ups (foundation/base/held_wakes.h).
//
// Threading: post() from any thread, at any time: what comes before the loop starts is
// handled when it does. The rest belongs to the loop.
#ifndef FOLIOT_FOUNDATION_PLATFORM_EVENT_INBOX_H_
#define FOLIOT_FOUNDATION_PLATFORM_EVENT_INBOX_H_

#include <cstddef>
#include <utility>

#include "foundation/base/held_wakes.h"
#include "foundation/base/time.h"
#include "foundation/platform/mpsc_ring.h"
#include "foundation/platform/parker.h"

namespace foliot {

template <typename Event>
class EventInbox final : private Sleeper {
 public:
  // In events.
  explicit EventInbox(size_t capacity = 4096) : events_(capacity) {}

  // False if the inbox is full or closed, and the event is then not moved from; after
  // true it will be handled.
  bool post(Event&& event) { return events_.push(std::move(event)) && woken(); }
  bool post(const Event& event) { return events_.push(event) && woken(); }

  // Takes no more events.
  void close() {
    events_.close();
    parker_.unpark();
  }
  bool closed_and_empty() const { return events_.closed_and_empty(); }

  // The loop's thread: passes the next event to `handle`; false if there is none.
  template <typename Handle>
  bool consume(Handle&& handle) {
    return events_.consume(std::forward<Handle>(handle));
  }
  // The loop's thread: sleeps until an event was posted, or until `wake_at`; the last
  // `spin` of that time it does not sleep.
  void wait_until(TimePoint wake_at, Duration spin) { parker_.park_until(wake_at, spin); }

 private:
  bool woken() {
    HeldWakes::wake(*this);
    return true;
  }
  void wake() override { parker_.unpark(); }

  MpscRing<Event> events_;
  Parker parker_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_EVENT_INBOX_H_
