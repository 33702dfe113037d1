// EventLoop<Event>: the real loop. Runs one single-threaded state machine on a
// thread of its own, fed by an EventInbox and one timer. sim/ has its virtual
// counterpart.
//
// The loop works in turns: it passes every waiting event to the handler, then ends the
// turn, then sleeps until the next event or the instant that the handler named. A
// handler gathers what it sends during the turn and sends it at its end. The first turn
// comes right after start(), without waiting.
//
// A loop that has volunteers is turned by whichever thread finds it idle: its own, which has the timer, or one that
// releases its HeldWakes after it posted. The volunteer's events are handled without a wake-up of another thread. What
// it leaves after a few turns is left to the loop's thread, so that a flood of events does not hold the volunteer up.
//
// Threading: start(), stop() and the destructor belong to the owner; the handler may
// post to its own loop's inbox. Volunteers post no more when the loop is destroyed.
#ifndef FOLIOT_FOUNDATION_PLATFORM_EVENT_LOOP_H_
#define FOLIOT_FOUNDATION_PLATFORM_EVENT_LOOP_H_

#include <atomic>
#include <cstddef>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/platform/baton.h"
#include "foundation/platform/clock.h"
#include "foundation/platform/event_inbox.h"
#include "foundation/platform/thread.h"

namespace foliot {

// The state machine that runs in a loop. All calls come from the loop's thread, or from one thread at a time where the
// loop has volunteers; `now` is monotonic_now() and never goes back.
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
  bool has_volunteers = false;
};

template <typename Event>
class EventLoop final : private TurnServer {
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
    if (options_.has_volunteers) inbox_.serve_by(this);
    return Status();
  }

  // Takes no more events, handles those posted, ends the last turn, joins. Events
  // of a loop that was never started are dropped. Calling it again does nothing.
  void stop() {
    inbox_.close();
    thread_.join();
    inbox_.serve_by(nullptr);
  }

 private:
  // Without new events a volunteer has one turn.
  static constexpr int kVolunteerTurnsMax = 4;

  void run() {
    while (true) {
      sleeps_until_.store(TimePoint::infinite_future());
      TimePoint wake_at = TimePoint::infinite_future();  // while a volunteer turns the loop: it says when
      if (baton_.take()) {
        bool is_full = false;
        do {
          is_full = turn();
          if (inbox_.closed_and_empty()) return;  // with the baton, so that no volunteer follows
        } while (is_full || !baton_.put_down());
        wake_at = next_turn_.load();
        sleeps_until_.store(wake_at);
        if (next_turn_.load() < wake_at) continue;  // a volunteer's turn has just ended
      }
      inbox_.wait_until(wake_at, options_.spin);
    }
  }

  void serve() override {
    if (!baton_.take()) return;
    for (int turns = 0; turns < kVolunteerTurnsMax; ++turns) {
      const bool is_full = turn();
      if (is_full || !baton_.put_down()) continue;
      if (next_turn_.load() < sleeps_until_.load() || inbox_.closed()) inbox_.wake();
      return;
    }
    baton_.drop();
    inbox_.wake();
  }

  // REQUIRES: the baton. Returns whether there may be more events.
  bool turn() {
    const size_t handled = handle_events();
    next_turn_.store(handler_.on_turn_end(monotonic_now()));
    return handled == options_.events_per_turn_max;
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
  Baton baton_;                                                        // to be had for a turn
  std::atomic<TimePoint> next_turn_{TimePoint()};                      // at the latest, as the last turn has said
  std::atomic<TimePoint> sleeps_until_{TimePoint::infinite_future()};  // the loop's thread; infinite while it is awake
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_EVENT_LOOP_H_
