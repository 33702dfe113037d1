#include "foundation/base/tail_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "foundation/base/random.h"

namespace foliot {
namespace {

Duration us(int64_t n) { return Duration::microseconds(n); }
TimePoint at(int64_t ms) { return TimePoint() + Duration::milliseconds(ms); }

TEST(TailWindowTest, StartsFromItsPrior) {
  const TailWindow window(us(100));
  EXPECT_GT(window.tail(1e-5), us(900));
  EXPECT_LT(window.tail(1e-5), us(2500));
}

// The exponential's quantile of 1e-4 is 9.2 means; a window has seen a tenth of as many values.
TEST(TailWindowTest, KnowsAQuantileThatItHasNotSeen) {
  Random random(7);
  TailWindow window(us(1000));
  uint64_t exceeded = 0;
  for (int64_t i = 0; i < 1'000'000; ++i) {
    const Duration value = us(50) + us(20).scaled(random.exponential());
    if (i > 2000 && value > window.tail(1e-4)) ++exceeded;
    window.record(value, at(i));
  }
  EXPECT_LE(exceeded, 300u);
  EXPECT_GE(exceeded, 30u);
  EXPECT_LT(window.tail(1e-4), us(50 + 20 * 13));
}

TEST(TailWindowTest, ItsQuantilesAreThoseOfItsValues) {
  TailWindow window(Duration::microseconds(100));
  for (int i = 0; i < 4000; ++i) {
    window.record(Duration::milliseconds(1 + i * 7 % 1000), TimePoint() + Duration::milliseconds(i));
  }
  for (size_t i = 0; i < TailWindow::kParts.size(); ++i) {
    EXPECT_NEAR(window.quantiles()[i].to_milliseconds(), 1000 - 1000.0 / TailWindow::kParts[i], 15);
  }
}

TEST(TailWindowTest, WhatIsExceededOftenIsNoChange) {
  TailWindow window(us(1));
  TimePoint now;
  const auto record = [&](int64_t milliseconds, int times) {
    for (int i = 0; i < times; ++i)
      window.record(Duration::milliseconds(milliseconds), now += Duration::milliseconds(1));
  };
  window.set_recent_above(6);
  record(1, 10);
  record(10, 6);
  EXPECT_EQ(window.recent(), Duration::milliseconds(1));
  record(10, 1);
  EXPECT_EQ(window.recent(), Duration::milliseconds(10)) << "seven of the last sixteen";
  window.set_recent_above(8);
  EXPECT_EQ(window.recent(), Duration::milliseconds(1));
}

TEST(TailWindowTest, OneStallLeavesTheTailAlone) {
  TailWindow window(us(100));
  for (int64_t i = 0; i < 1000; ++i) window.record(us(i % 10), at(i));
  const Duration before = window.tail(1e-5);
  for (int64_t i = 0; i < 2; ++i) window.record(Duration::milliseconds(100), at(1000 + i));
  for (int64_t i = 0; i < 100; ++i) window.record(us(i % 10), at(1010 + i));
  EXPECT_LT(window.tail(1e-5), before + us(5));
}

TEST(TailWindowTest, WhatStaysIsSeenAtOnce) {
  TailWindow window(us(100));
  for (int64_t i = 0; i < 1000; ++i) window.record(us(i % 10), at(i));
  for (int64_t i = 0; i < 3; ++i) window.record(Duration::milliseconds(5), at(1000 + i));
  EXPECT_EQ(window.recent(), Duration::milliseconds(5));
}

TEST(TailWindowTest, WhatIsGoneIsForgottenAtOnce) {
  TailWindow window(Duration::milliseconds(1));
  TimePoint now;
  const auto record = [&](int64_t milliseconds, int times) {
    for (int i = 0; i < times; ++i)
      window.record(Duration::milliseconds(milliseconds), now += Duration::milliseconds(1));
  };
  record(10, 16);
  record(1, 13);
  EXPECT_EQ(window.recent(), Duration::milliseconds(10)) << "three of the last sixteen";
  record(1, 1);
  EXPECT_EQ(window.recent(), Duration::milliseconds(1)) << "two of them";
}

TEST(TailWindowTest, ForgetsWhatIsOld) {
  TailWindow window(us(100));
  for (int64_t i = 0; i < 1000; ++i) window.record(Duration::milliseconds(30), at(i));
  EXPECT_GE(window.tail(0.01), Duration::milliseconds(30));
  for (int64_t i = 0; i < 200; ++i) window.record(us(i % 10), at(40'000 + i));
  EXPECT_LT(window.tail(0.01), us(100));
  EXPECT_LT(window.recent(), us(100));
}

TEST(TailWindowTest, AStallAmongTheFirstValuesIsNoTail) {
  TailWindow window(us(100));
  window.record(Duration::milliseconds(50), at(0));
  for (int64_t i = 0; i < 40; ++i) window.record(us(i % 10), at(i));
  EXPECT_LT(window.tail(1e-3), Duration::milliseconds(2));
  EXPECT_LT(window.median(), us(100));
}

// What came before what is in the window only decides how fast it is looked through.
TEST(TailWindowTest, SaysWhatIsInItAlone) {
  Random random(7);
  const auto random_value = [&](int kind) {
    switch (kind) {
      case 0: return Duration::microseconds(50);
      case 1: return Duration::nanoseconds(static_cast<int64_t>(random.uniform() * 1e6));
      case 2: return Duration::microseconds(random.uniform() < 0.3 ? 900 : 20);
      case 3: return Duration::from_seconds(1e-4 * -std::log(1 - random.uniform()));
      default: return -Duration::microseconds(static_cast<int64_t>(random.uniform() * 4));
    }
  };
  const auto feed = [](TailWindow& window, std::span<const Duration> values, TimePoint begin) {
    for (size_t i = 0; i < values.size(); ++i) window.record(values[i], begin + Duration::microseconds(100) * i);
    // So late that all is looked at again.
    window.record(values.front(), begin + Duration::seconds(2));
  };
  TailWindow used(Duration::microseconds(100));
  std::vector<Duration> values(TailWindow::kSize);
  for (int64_t round = 0; round < 100; ++round) {
    const int kind = static_cast<int>(random.uniform() * 5);
    const int other = static_cast<int>(random.uniform() * 5);
    const double part = random.uniform();
    for (Duration& value : values) value = random_value(random.uniform() < part ? kind : other);
    const TimePoint begin = TimePoint() + Duration::seconds(3) * round;
    feed(used, values, begin);
    TailWindow unused(Duration::microseconds(100));
    feed(unused, values, begin);

    EXPECT_EQ(used.tail(1e-4), unused.tail(1e-4)) << "round " << round << ": " << kind << " and " << other;
    EXPECT_EQ(used.recent(), unused.recent());
    std::vector<Duration> sorted = values;  // the last one took the place of the first, and equals it
    std::ranges::sort(sorted);
    EXPECT_EQ(used.median(), sorted[sorted.size() / 2 - 1]) << "round " << round << ": " << kind << " and " << other;
  }
}

}  // namespace
}  // namespace foliot
