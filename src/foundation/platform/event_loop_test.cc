#include "foundation/platform/event_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

#include "foundation/base/held_wakes.h"

namespace foliot {
namespace {

struct Numbered {
  uint32_t poster = 0;
  uint32_t number = 0;
};
struct Large {
  std::array<std::byte, 2048> bytes{};
};
using Event = std::variant<Numbered, Large>;

// Keeps what it saw; only the loop's thread touches it until stop().
class Recorder : public EventHandler<Event> {
 public:
  void on_event(Event& event, TimePoint now) override {
    EXPECT_GE(now, last_);
    last_ = now;
    ++events_this_turn_;
    if (const auto* numbered = std::get_if<Numbered>(&event)) seen_.push_back(*numbered);
  }
  TimePoint on_turn_end(TimePoint now) override {
    EXPECT_GE(now, last_);
    last_ = now;
    turns_.push_back(events_this_turn_);
    events_this_turn_ = 0;
    return TimePoint::infinite_future();
  }

  std::vector<Numbered> seen_;
  std::vector<size_t> turns_;

 private:
  TimePoint last_;
  size_t events_this_turn_ = 0;
};

EventLoopOptions options() { return {.thread = {.name = "test-loop"}}; }

TEST(EventLoopTest, HandlesAllAtHandThenEndsTheTurn) {
  Recorder recorder;
  EventLoopOptions small = options();
  small.events_per_turn_max = 4;
  EventInbox<Event> inbox(64);
  EventLoop<Event> loop(small, inbox, recorder);
  for (uint32_t i = 0; i < 10; ++i) ASSERT_TRUE(inbox.post(Numbered{0, i}));
  ASSERT_TRUE(loop.start().ok());
  loop.stop();
  ASSERT_EQ(recorder.seen_.size(), 10u);
  for (uint32_t i = 0; i < 10; ++i) EXPECT_EQ(recorder.seen_[i].number, i);
  ASSERT_GE(recorder.turns_.size(), 3u);
  EXPECT_EQ((std::vector<size_t>(recorder.turns_.begin(), recorder.turns_.begin() + 3)),
            (std::vector<size_t>{4, 4, 2}));
}

TEST(EventLoopTest, FullInboxRefuses) {
  Recorder recorder;
  EventInbox<Event> inbox(2);
  EventLoop<Event> loop(options(), inbox, recorder);
  EXPECT_TRUE(inbox.post(Numbered{0, 0}));
  EXPECT_TRUE(inbox.post(Large{}));
  EXPECT_FALSE(inbox.post(Numbered{0, 1}));
  ASSERT_TRUE(loop.start().ok());
  loop.stop();
  EXPECT_EQ(recorder.seen_.size(), 1u);
  EXPECT_FALSE(inbox.post(Numbered{0, 2}));
}

TEST(EventLoopTest, FirstTurnComesByItself) {
  Recorder recorder;
  {
    EventInbox<Event> inbox(64);
    EventLoop<Event> loop(options(), inbox, recorder);
    ASSERT_TRUE(loop.start().ok());
  }
  ASSERT_FALSE(recorder.turns_.empty());
  EXPECT_EQ(recorder.turns_.front(), 0u);
}

TEST(EventLoopTest, StartReportsWhyItFails) {
  Recorder recorder;
  EventLoopOptions impossible = options();
  impossible.thread.cores = {kCoresMax - 1};
  EventInbox<Event> inbox(64);
  EventLoop<Event> loop(impossible, inbox, recorder);
  EXPECT_EQ(loop.start().code(), StatusCode::kInvalidArgument);
  loop.stop();
  EXPECT_TRUE(recorder.turns_.empty());
}

// Posters race with each other, with the loop falling asleep, and with stop():
// what post() accepted is handled, in each poster's order.
TEST(EventLoopTest, ManyPostersLoseNothing) {
  constexpr uint32_t kPosters = 4;
  Recorder recorder;
  EventInbox<Event> inbox(64);
  EventLoop<Event> loop(options(), inbox, recorder);
  ASSERT_TRUE(loop.start().ok());
  std::vector<uint32_t> accepted(kPosters, 0);
  std::atomic<uint32_t> total{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> posters;
  for (uint32_t p = 0; p < kPosters; ++p) {
    posters.emplace_back([&, p] {
      while (!done.load(std::memory_order_relaxed)) {
        if (inbox.post(Numbered{p, accepted[p]})) {
          ++accepted[p];
          total.fetch_add(1, std::memory_order_relaxed);
        }
        if (accepted[p] % 7 == 0) std::this_thread::yield();  // lets the loop fall asleep
      }
    });
  }
  while (total.load(std::memory_order_relaxed) < 100'000) std::this_thread::yield();
  loop.stop();
  done.store(true);
  for (std::thread& poster : posters) poster.join();

  std::vector<uint32_t> expected(kPosters, 0);
  for (const Numbered& event : recorder.seen_) {
    ASSERT_EQ(event.number, expected[event.poster]);
    ++expected[event.poster];
  }
  EXPECT_EQ(expected, accepted);
}

// One event at a time, each posted when the one before has been handled: a lost
// wake-up would leave the loop asleep for good.
TEST(EventLoopTest, NoWakeUpIsLost) {
  class Counter : public EventHandler<int> {
   public:
    void on_event(int& event, TimePoint) override { handled.store(event); }
    TimePoint on_turn_end(TimePoint) override { return TimePoint::infinite_future(); }
    std::atomic<int> handled{0};
  };
  Counter counter;
  EventInbox<int> inbox;
  EventLoop<int> loop({.thread = {.name = "test-loop"}}, inbox, counter);
  ASSERT_TRUE(loop.start().ok());
  for (int i = 1; i <= 20'000; ++i) {
    ASSERT_TRUE(inbox.post(i));
    while (counter.handled.load() != i) std::this_thread::yield();
  }
}

// Asks to be woken at instants of its own and remembers when each turn came.
class Ticker : public EventHandler<int> {
 public:
  explicit Ticker(int ticks) : ticks_(ticks) {}
  void on_event(int& event, TimePoint) override { events_.push_back(event); }
  TimePoint on_turn_end(TimePoint now) override {
    if (due_.is_infinite()) return due_;
    if (now >= due_) {
      fired_.push_back(now - due_);
      due_ = now + Duration::microseconds(200);
      if (static_cast<int>(fired_.size()) == ticks_) {
        due_ = TimePoint::infinite_future();
        finished_.set_value();
      }
    }
    return due_;
  }
  std::future<void> finished() { return finished_.get_future(); }

  std::vector<Duration> fired_;
  std::vector<int> events_;

 private:
  const int ticks_;
  TimePoint due_;
  std::promise<void> finished_;
};

TEST(EventLoopTest, TimerFiresWithoutEvents) {
  for (const Duration spin : {Duration(), Duration::microseconds(50), Duration::seconds(1)}) {
    Ticker ticker(10);
    std::future<void> finished = ticker.finished();
    EventInbox<int> inbox;
    EventLoop<int> loop({.thread = {.name = "test-loop"}, .spin = spin}, inbox, ticker);
    ASSERT_TRUE(loop.start().ok());
    finished.wait();
    loop.stop();
    EXPECT_EQ(ticker.fired_.size(), 10u);
    for (const Duration late : ticker.fired_) EXPECT_GE(late, Duration());
  }
}

TEST(EventLoopTest, TimerFiresUnderAFloodOfEvents) {
  Ticker ticker(10);
  std::future<void> finished = ticker.finished();
  EventInbox<int> inbox;
  EventLoop<int> loop({.thread = {.name = "test-loop"}, .events_per_turn_max = 16}, inbox, ticker);
  ASSERT_TRUE(loop.start().ok());
  int posted = 0;
  while (finished.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    if (inbox.post(posted)) ++posted;
  }
  loop.stop();
  ASSERT_EQ(ticker.events_.size(), static_cast<size_t>(posted));
  for (int i = 0; i < posted; ++i) EXPECT_EQ(ticker.events_[static_cast<size_t>(i)], i);
}

// What one thread posts and releases, one at a time: its events are handled by that thread before release() ends.
TEST(EventLoopTest, AVolunteerHasTheTurnOfAnIdleLoop) {
  class ThreadNoter : public EventHandler<int> {
   public:
    void on_event(int& event, TimePoint) override {
      handled.push_back(event);
      threads.push_back(std::this_thread::get_id());
    }
    TimePoint on_turn_end(TimePoint) override {
      turns.fetch_add(1);
      turns.notify_all();
      return TimePoint::infinite_future();
    }
    std::vector<int> handled;
    std::vector<std::thread::id> threads;
    std::atomic<int> turns{0};
  };
  ThreadNoter noter;
  EventInbox<int> inbox;
  EventLoop<int> loop({.thread = {.name = "test-loop"}, .has_volunteers = true}, inbox, noter);
  ASSERT_TRUE(loop.start().ok());
  noter.turns.wait(0);
  HeldWakes wakes;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(inbox.post(i));
    wakes.release();
  }
  loop.stop();
  ASSERT_EQ(noter.handled.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(noter.handled[static_cast<size_t>(i)], i);
  // The loop's thread may still be in its first turn when the first events come.
  const auto by_volunteer = std::ranges::count(noter.threads, std::this_thread::get_id());
  EXPECT_GT(by_volunteer, 50);
}

// The loop's own thread has slept without an instant to wake at; the one that the volunteer's turn names is kept.
TEST(EventLoopTest, TheInstantThatAVolunteersTurnNamesIsKept) {
  class Alarm : public EventHandler<int> {
   public:
    void on_event(int&, TimePoint now) override { due = now + Duration::milliseconds(1); }
    TimePoint on_turn_end(TimePoint now) override {
      if (now < due || due.is_infinite()) return due;
      due = TimePoint::infinite_future();
      rung.fetch_add(1);
      rung.notify_all();
      return due;
    }
    TimePoint due = TimePoint::infinite_future();
    std::atomic<int> rung{0};
  };
  Alarm alarm;
  EventInbox<int> inbox;
  EventLoop<int> loop({.thread = {.name = "test-loop"}, .has_volunteers = true}, inbox, alarm);
  ASSERT_TRUE(loop.start().ok());
  HeldWakes wakes;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(inbox.post(i));
    wakes.release();
    alarm.rung.wait(i);
  }
}

// Volunteers, posters that wake the loop's thread, and its stop race with each other: what was accepted is handled
// once, in each poster's order, and by one thread at a time.
TEST(EventLoopTest, VolunteersAndPostersLoseNothing) {
  class Exclusive : public EventHandler<Event> {
   public:
    void on_event(Event& event, TimePoint now) override {
      EXPECT_FALSE(inside.exchange(true));
      recorder.on_event(event, now);
      inside = false;
    }
    TimePoint on_turn_end(TimePoint now) override { return recorder.on_turn_end(now); }
    Recorder recorder;
    std::atomic<bool> inside{false};
  };
  constexpr uint32_t kPosters = 4;
  Exclusive handler;
  EventInbox<Event> inbox(64);
  EventLoopOptions with_volunteers = options();
  with_volunteers.has_volunteers = true;
  with_volunteers.events_per_turn_max = 8;
  EventLoop<Event> loop(with_volunteers, inbox, handler);
  ASSERT_TRUE(loop.start().ok());
  std::vector<uint32_t> accepted(kPosters, 0);
  std::atomic<uint32_t> total{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> posters;
  for (uint32_t p = 0; p < kPosters; ++p) {
    posters.emplace_back([&, p] {
      std::optional<HeldWakes> wakes;
      if (p % 2 == 0) wakes.emplace();
      while (!done.load(std::memory_order_relaxed)) {
        if (inbox.post(Numbered{p, accepted[p]})) {
          ++accepted[p];
          total.fetch_add(1, std::memory_order_relaxed);
        }
        if (accepted[p] % 5 == 0 && wakes) wakes->release();
        if (accepted[p] % 7 == 0) std::this_thread::yield();
      }
    });
  }
  while (total.load(std::memory_order_relaxed) < 100'000) std::this_thread::yield();
  loop.stop();
  done.store(true);
  for (std::thread& poster : posters) poster.join();

  std::vector<uint32_t> expected(kPosters, 0);
  for (const Numbered& event : handler.recorder.seen_) {
    ASSERT_EQ(event.number, expected[event.poster]);
    ++expected[event.poster];
  }
  EXPECT_EQ(expected, accepted);
}

// A handler that posts to its own loop is served in a later turn.
TEST(EventLoopTest, HandlerMayPost) {
  class Countdown : public EventHandler<int> {
   public:
    void on_event(int& event, TimePoint) override {
      ++handled;
      if (event == 0) {
        finished.set_value();
      } else {
        EXPECT_TRUE(inbox->post(event - 1));
      }
    }
    TimePoint on_turn_end(TimePoint) override { return TimePoint::infinite_future(); }
    EventInbox<int>* inbox = nullptr;
    int handled = 0;
    std::promise<void> finished;
  };
  Countdown countdown;
  EventInbox<int> inbox;
  EventLoop<int> loop({.thread = {.name = "test-loop"}}, inbox, countdown);
  countdown.inbox = &inbox;
  ASSERT_TRUE(inbox.post(5));
  ASSERT_TRUE(loop.start().ok());
  countdown.finished.get_future().wait();
  loop.stop();
  EXPECT_EQ(countdown.handled, 6);
}

}  // namespace
}  // namespace foliot
