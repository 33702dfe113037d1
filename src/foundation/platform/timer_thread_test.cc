#include "foundation/platform/timer_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "foundation/platform/clock.h"

namespace foliot {
namespace {

TEST(TimerThreadTest, CallsOnceEachInstantHasCome) {
  TimePoint due = monotonic_now();
  int calls = 0;
  std::promise<void> called;
  TimerThread timer;
  timer.set(0, due);
  ASSERT_TRUE(timer
                  .start({.name = "timer"},
                         [&](TimePoint now) {
                           EXPECT_GE(now, due);
                           due = now + Duration::microseconds(100);
                           if (++calls < 5) return timer.set(0, due);
                           called.set_value();
                         })
                  .ok());
  called.get_future().wait();
}

TEST(TimerThreadTest, AnEarlierInstantTakesTheKernelsPlace) {
  std::promise<void> called;
  TimerThread timer;
  timer.set(0, monotonic_now() + Duration::seconds(3600));
  ASSERT_TRUE(timer.start({.name = "timer"}, [&](TimePoint) { called.set_value(); }).ok());
  timer.set(0, TimePoint());
  called.get_future().wait();
}

TEST(TimerThreadTest, TheFirstOfSeveralAlarmsCounts) {
  std::promise<void> called;
  TimerThread timer(2);
  ASSERT_TRUE(timer.start({.name = "timer"}, [&](TimePoint) { called.set_value(); }).ok());
  timer.set(1, monotonic_now());
  timer.set(0, monotonic_now() + Duration::seconds(3600));
  called.get_future().wait();
}

// What was put off is not called for at its first instant: the alarm set later comes before it.
TEST(TimerThreadTest, WhatIsPutOffDoesNotComeAtItsFirstInstant) {
  for (Duration ahead = Duration::milliseconds(20);; ahead = ahead.scaled(2)) {
    std::promise<TimePoint> called;
    int calls = 0;
    TimerThread timer;
    const TimePoint first = monotonic_now() + ahead;
    const TimePoint later = first + ahead;
    timer.set(0, first);
    ASSERT_TRUE(timer
                    .start({.name = "timer"},
                           [&](TimePoint now) {
                             if (++calls == 1) called.set_value(now);
                           })
                    .ok());
    timer.set(0, later);
    const bool was_put_off = monotonic_now() < first;
    const TimePoint at = called.get_future().get();
    timer.stop();
    if (!was_put_off) continue;  // the machine was too slow, and gets more time
    EXPECT_GE(at, later);
    EXPECT_EQ(calls, 1);
    return;
  }
}

TEST(TimerThreadTest, NothingIsCalledAfterStop) {
  std::atomic<int> calls{0};
  TimerThread timer;
  ASSERT_TRUE(timer
                  .start({.name = "timer"},
                         [&](TimePoint now) {
                           ++calls;
                           timer.set(0, now);
                         })
                  .ok());
  timer.set(0, monotonic_now());
  timer.stop();
  const int before = calls;
  timer.set(0, TimePoint());
  timer.stop();
  EXPECT_EQ(calls, before);
}

}  // namespace
}  // namespace foliot
