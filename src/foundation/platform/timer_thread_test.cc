#include "foundation/platform/timer_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

#include "foundation/platform/clock.h"

namespace foliot {
namespace {

TEST(TimerThreadTest, CallsAgainAtTheInstantThatWasReturned) {
  TimePoint due = monotonic_now();
  int calls_due = 0;
  std::promise<void> called;
  TimerThread timer;
  ASSERT_TRUE(timer
                  .start({.name = "timer"},
                         [&](TimePoint now) {
                           if (now < due) return due;  // woken without a reason
                           due = now + Duration::microseconds(100);
                           if (++calls_due < 5) return due;
                           called.set_value();
                           return due = TimePoint::infinite_future();
                         })
                  .ok());
  called.get_future().wait();
}

TEST(TimerThreadTest, AWakeEndsTheLongestSleepAndIsNotLost) {
  std::atomic<int> calls{0};
  std::vector<std::promise<void>> called(3);
  TimerThread timer;
  timer.wake();
  ASSERT_TRUE(timer
                  .start({.name = "timer"},
                         [&](TimePoint) {
                           const int call = calls++;
                           if (call < 3) called[static_cast<size_t>(call)].set_value();
                           return TimePoint::infinite_future();
                         })
                  .ok());
  called[0].get_future().wait();
  called[1].get_future().wait();  // the one before start()
  timer.wake();
  called[2].get_future().wait();
}

TEST(TimerThreadTest, NothingIsCalledAfterStop) {
  std::atomic<int> calls{0};
  TimerThread timer;
  ASSERT_TRUE(timer
                  .start({.name = "timer"},
                         [&](TimePoint now) {
                           ++calls;
                           return now;
                         })
                  .ok());
  timer.stop();
  const int before = calls;
  timer.wake();
  timer.stop();
  EXPECT_EQ(calls, before);
}

}  // namespace
}  // namespace foliot
