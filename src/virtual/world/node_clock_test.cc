#include "virtual/world/node_clock.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

TimePoint at_ns(int64_t ns) { return TimePoint::from_nanoseconds(ns); }

TEST(NodeClockTest, ShowsVirtualTimeByDefault) {
  EXPECT_EQ(NodeClock().local(at_ns(123)), at_ns(123));
  EXPECT_EQ(NodeClock().instant(at_ns(123)), at_ns(123));
}

TEST(NodeClockTest, AnInstantIsTheFirstAtWhichTheClockShowsATime) {
  for (const int64_t drift : {-500, -1, 0, 1, 500}) {
    const NodeClock clock(Duration::seconds(7), drift);
    for (const int64_t ns : {int64_t{1}, int64_t{999'999}, int64_t{1'234'567'891}, int64_t{60'000'000'007}}) {
      const TimePoint shown = clock.local(at_ns(ns));
      const TimePoint first = clock.instant(shown);
      EXPECT_EQ(clock.local(first), shown) << drift << " at " << ns;
      EXPECT_LT(clock.local(first - Duration::nanoseconds(1)), shown) << drift << " at " << ns;
    }
  }
}

TEST(NodeClockTest, NeverGoesBack) {
  const NodeClock slow(Duration(), -500);
  for (int64_t ns = 1'999'000; ns < 2'001'000; ++ns) {
    ASSERT_LE(slow.local(at_ns(ns)), slow.local(at_ns(ns + 1)));
  }
}

TEST(NodeClockTest, KeepsInfinity) {
  const NodeClock clock(Duration::seconds(7), 100);
  EXPECT_TRUE(clock.local(TimePoint::infinite_future()).is_infinite());
  EXPECT_TRUE(clock.instant(TimePoint::infinite_future()).is_infinite());
}

}  // namespace
}  // namespace foliot
