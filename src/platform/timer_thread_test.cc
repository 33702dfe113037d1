#include "platform/timer_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

#include "platform/clock.h"

namespace foliot {
namespace {

TEST(TimerThreadTest, CallsAgainAtTheInstantThatWasReturned) {
  std::vector<TimePoint> due{monotonic_now()};
  std::promise<bool> never_early;
  bool early = false;
  TimerThread timer;
  ASSERT_TRUE(timer
                  .start({.name = "timer"},
                         [&](TimePoint now) {
                           if (now < due.back()) {
                             early = true;
                           } else if (due.size() == 5) {
                             never_early.set_value(!early);
                             return TimePoint::infinite_future();
                           } else {
                             due.push_back(now + Duration::microseconds(100));
                           }
                           return due.back();
                         })
                  .ok());
  // What is woken without a reason looks again, so that only the number of calls is certain.
  never_early.get_future().wait();
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
