#include "foundation/platform/parker.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>

#include "foundation/platform/clock.h"

namespace foliot {
namespace {

// How often this thread has left its processor of its own accord.
int64_t voluntary_switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

TEST(ParkerTest, SleepsUntilTheDeadline) {
  Parker parker;
  const TimePoint deadline = monotonic_now() + Duration::milliseconds(5);
  const int64_t switches = voluntary_switches();
  while (monotonic_now() < deadline) parker.park_until(deadline);
  EXPECT_GE(voluntary_switches() - switches, 1) << "park_until() returned without having slept";
}

TEST(ParkerTest, SpinningEndsAtTheDeadline) {
  Parker parker;
  const TimePoint deadline = monotonic_now() + Duration::milliseconds(2);
  parker.park_until(deadline, Duration::seconds(1));
  EXPECT_GE(monotonic_now(), deadline);
}

TEST(ParkerTest, WakeUpThatComesFirstIsKept) {
  Parker parker;
  parker.unpark();
  parker.unpark();  // does not add up
  parker.park_until(TimePoint::infinite_future());
  const TimePoint deadline = monotonic_now() + Duration::milliseconds(2);
  parker.park_until(deadline, Duration::seconds(1));
  EXPECT_GE(monotonic_now(), deadline);
}

TEST(ParkerTest, PastDeadlineReturnsAtOnce) {
  Parker parker;
  parker.park_until(TimePoint::from_nanoseconds(-1));
  parker.park_until(TimePoint());
  SUCCEED();
}

// Each side waits for the other's number; one lost wake-up and it never ends.
void ping_pong(TimePoint deadline, Duration spin) {
  constexpr int kRounds = 20'000;
  Parker ping;
  Parker pong;
  std::atomic<int> ball{0};
  std::thread other([&] {
    for (int i = 0; i < kRounds; ++i) {
      while (ball.load(std::memory_order_relaxed) != 2 * i + 1) pong.park_until(deadline, spin);
      ball.store(2 * i + 2, std::memory_order_relaxed);
      ping.unpark();
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    ball.store(2 * i + 1, std::memory_order_relaxed);
    pong.unpark();
    while (ball.load(std::memory_order_relaxed) != 2 * i + 2) ping.park_until(deadline, spin);
  }
  other.join();
  EXPECT_EQ(ball.load(), 2 * kRounds);
}

TEST(ParkerTest, NoWakeUpIsLost) { ping_pong(TimePoint::infinite_future(), Duration()); }

TEST(ParkerTest, NoWakeUpIsLostBesideADeadline) { ping_pong(monotonic_now() + Duration::seconds(3600), Duration()); }

}  // namespace
}  // namespace foliot
