// EventLoop<Event>: the real loop. Runs one single-threaded state machine on a
// thread of its own, fed by an EventInbox and one timer. sim/ has its virtual
// counterpart.
//
// The loop works in turns: it passes every waiting event to the handler, then ends the
// turn, then sleeps until the next event or the instant that the handler named. A
// handler gathers what it sends during the turn and sends it at its end. The first turn
// comes right after start(), without waiting.
//
// Threading: start(), stop() and the destructor belong to the owner; the handler may
// post to its own loop's inbox.
#ifndef FOLIOT_FOUNDATION_PLATFORM_EVENT_LOOP_H_
#define FOLIOT_FOUNDATION_PLATFORM_EVENT_LOOP_H_

#include <cstddef>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/platform/clock.h"
#include "foundation/platform/event_inbox.h"
#include "foundation/platform/thread.h"

namespace foliot {

// The state machine that runs in a loop. All calls come from the loop's thread; `now`
// is monotonic_now() and never goes back.
template <typename Event>
class EventHandler {
 public:
  virtual ~EventHandler() = default;
  // The event is the handler's to move from; it is destroyed afterwards.
  virtual void on_event(Event& event, TimePoint now) = 0;
  // Ends a turn, even one without events. Returns when the next turn begins at
  // the latest: an instant not after `now` means at once.
  virtual TimePoint on_turn_end(TimePoint now) = 0;
};

struct EventLoopOptions {
  ThreadOptions thread{};
  // A turn ends after so many events though there may be more, so that a flood
  // of them cannot hold up the timer.
  size_t events_per_turn_max = 256;
  // How long before the timer the loop stops sleeping and spins (Parker).
  Duration spin{};
};

template <typename Event>
class EventLoop {
 public:
  // Both outlive the loop.
  EventLoop(EventLoopOptions options, EventInbox<Event>& inbox, EventHandler<Event>& handler)
      : options_(std::move(options)), inbox_(inbox), handler_(handler) {
    FOLIOT_CHECK(options_.events_per_turn_max > 0);
  }
  ~EventLoop() { stop(); }
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Call once. Errors: those of Thread::start().
  Status start() {
    FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start(options_.thread, [this] { run(); }));
    return Status();
  }

  // Takes no more events, handles those posted, ends the last turn, joins. Events
  // of a loop that was never started are dropped. Calling it again does nothing.
  void stop() {
    inbox_.close();
    thread_.join();
  }

 private:
  void run() {
    while (true) {
      const size_t handled = handle_events();
      const TimePoint wake_at = handler_.on_turn_end(monotonic_now());
      if (inbox_.closed_and_empty()) return;
      if (handled < options_.events_per_turn_max) inbox_.wait_until(wake_at, options_.spin);
    }
  }

  size_t handle_events() {
    size_t handled = 0;
    while (handled < options_.events_per_turn_max &&
           inbox_.consume([this](Event& event) { handler_.on_event(event, monotonic_now()); })) {
      ++handled;
    }
    return handled;
  }

  const EventLoopOptions options_;
  EventInbox<Event>& inbox_;
  EventHandler<Event>& handler_;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_EVENT_LOOP_H_
