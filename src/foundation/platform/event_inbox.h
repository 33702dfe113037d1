// EventInbox<Event>: the bounded queue of an EventLoop. It exists before its loop, so
// that parts that send to each other in a circle can be made one after another.
//
// Events of one poster stay in order. Posting allocates nothing (unless moving an Event
// does) and makes a system call only when the loop is asleep, and then later where the
// poster holds its wake-ups (foundation/base/held_wakes.h).
//
// Threading: post() from any thread, at any time: what comes before the loop starts is
// handled when it does. The rest belongs to the loop, and consume() to what has its turn.
#ifndef FOLIOT_FOUNDATION_PLATFORM_EVENT_INBOX_H_
#define FOLIOT_FOUNDATION_PLATFORM_EVENT_INBOX_H_

#include <atomic>
#include <cstddef>
#include <utility>

#include "foundation/base/held_wakes.h"
#include "foundation/base/time.h"
#include "foundation/platform/mpsc_ring.h"
#include "foundation/platform/parker.h"

namespace foliot {

// What can have a turn of a loop on the thread that calls it.
class TurnServer {
 public:
  // Has turns until nothing is left in the inbox, or leaves that to the loop's thread.
  virtual void serve() = 0;

 protected:
  ~TurnServer() = default;
};

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
    closed_.store(true);
    parker_.unpark();
  }
  bool closed() const { return closed_.load(); }
  bool closed_and_empty() const { return events_.closed_and_empty(); }

  // By the loop, null or before it ends: threads that release their HeldWakes have the loop's turns by `server`.
  void serve_by(TurnServer* server) { server_.store(server, std::memory_order_release); }
  // The loop's thread looks again.
  void wake() override { parker_.unpark(); }

  // Passes the next event to `handle`; false if there is none.
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
  void wake_or_serve() override {
    TurnServer* const server = server_.load(std::memory_order_acquire);
    server == nullptr ? wake() : server->serve();
  }

  MpscRing<Event> events_;
  Parker parker_;
  std::atomic<bool> closed_{false};
  std::atomic<TurnServer*> server_{nullptr};
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_EVENT_INBOX_H_
