#include "foundation/base/time.h"

#include <gtest/gtest.h>

#include <limits>

namespace foliot {
namespace {

TEST(TimeTest, DurationsAddAndScale) {
  EXPECT_EQ(Duration::milliseconds(3) + Duration::microseconds(500), Duration::microseconds(3500));
  EXPECT_EQ(Duration::milliseconds(3) * 2 - Duration::milliseconds(1), Duration::milliseconds(5));
  EXPECT_EQ(Duration::from_seconds(0.25).to_milliseconds(), 250);
  EXPECT_LT(-Duration::nanoseconds(1), Duration());
}

TEST(TimeTest, InfinityAbsorbs) {
  const TimePoint never = TimePoint::infinite_future();
  EXPECT_TRUE((never - Duration::seconds(5)).is_infinite());
  EXPECT_TRUE((never + Duration::seconds(5)).is_infinite());
  EXPECT_EQ(never - TimePoint(), Duration::max());
}

constexpr Duration kLargest = Duration::max();
constexpr Duration kSmallest = Duration::nanoseconds(std::numeric_limits<int64_t>::min());
constexpr Duration kTick = Duration::nanoseconds(1);

TEST(TimeTest, DurationsStayAtTheEndsOfTheirRange) {
  EXPECT_EQ(kLargest + kTick, kLargest);
  EXPECT_EQ(kSmallest + -kTick, kSmallest);
  EXPECT_EQ(kLargest + kSmallest, -kTick);
  EXPECT_EQ(kSmallest - kTick, kSmallest);
  EXPECT_EQ(Duration() - kSmallest, kLargest);
  EXPECT_EQ(kLargest - kLargest, Duration());
  EXPECT_EQ(-kSmallest, kLargest);
  EXPECT_EQ(-kLargest, kSmallest + kTick);
  Duration sum = kLargest;
  sum += kTick;
  EXPECT_EQ(sum, kLargest);
  sum = kSmallest;
  sum -= kTick;
  EXPECT_EQ(sum, kSmallest);
}

TEST(TimeTest, DurationsSaturateWhenTheyAreMultiplied) {
  EXPECT_EQ(kLargest * 2, kLargest);
  EXPECT_EQ(kLargest * -2, kSmallest);
  EXPECT_EQ(kSmallest * 2, kSmallest);
  EXPECT_EQ(kSmallest * -1, kLargest);
  EXPECT_EQ(kLargest * 0, Duration());
  EXPECT_EQ(kSmallest / -1, kLargest);
  EXPECT_EQ(kLargest / 2 * 2, kLargest - kTick);
  constexpr int64_t kMany = std::numeric_limits<int64_t>::max();
  for (const Duration many : {Duration::microseconds(kMany), Duration::milliseconds(kMany), Duration::seconds(kMany)}) {
    EXPECT_EQ(many, kLargest);
  }
  EXPECT_EQ(Duration::seconds(-kMany), kSmallest);
  EXPECT_EQ(Duration::seconds(9'223'372'036).nanoseconds(), 9'223'372'036'000'000'000);
}

TEST(TimeTest, RealNumbersBeyondTheRangeSaturate) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double large : {1e10, 9223372036.854775808, kInfinity}) {
    EXPECT_EQ(Duration::from_seconds(large), kLargest) << large;
    EXPECT_EQ(Duration::from_seconds(-large), kSmallest) << large;
    EXPECT_EQ(Duration::from_milliseconds(large * 1000), kLargest) << large;
    EXPECT_EQ(Duration::seconds(1).scaled(large), kLargest) << large;
    EXPECT_EQ(Duration::seconds(1).scaled(-large), kSmallest) << large;
  }
  EXPECT_EQ(Duration().scaled(kInfinity), Duration());  // not a number
  EXPECT_EQ(Duration::from_seconds(std::numeric_limits<double>::quiet_NaN()), Duration());
  EXPECT_EQ(kLargest.scaled(0.5), Duration::nanoseconds(int64_t{1} << 62));
}

TEST(TimeTest, InstantsBeyondTheRangeAreInfinite) {
  const TimePoint late = TimePoint::from_nanoseconds(std::numeric_limits<int64_t>::max() - 1);
  EXPECT_FALSE(late.is_infinite());
  EXPECT_TRUE((late + kTick * 2).is_infinite());
  EXPECT_TRUE((TimePoint() + kLargest).is_infinite());
  EXPECT_TRUE((late - kSmallest).is_infinite());
  const TimePoint first = TimePoint::from_nanoseconds(std::numeric_limits<int64_t>::min());
  EXPECT_EQ(first - kTick, first);
  EXPECT_EQ(first + kSmallest, first);
  EXPECT_EQ(late - first, kLargest);
  EXPECT_EQ(first - late, kSmallest);
  EXPECT_EQ(first - TimePoint::infinite_future(), kSmallest);
}

}  // namespace
}  // namespace foliot
