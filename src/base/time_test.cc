#include "base/time.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace foliot
