#include "cluster/transport/clock_offset.h"

#include <gtest/gtest.h>

#include "foundation/base/random.h"
#include "foundation/base/test_time.h"

namespace foliot {
namespace {

TEST(ClockOffsetTest, TheTruthIsWithinItsError) {
  Random random(1);
  ClockOffset offset;
  const Duration truth = Duration::milliseconds(-12345);
  for (int i = 0; i < 1000; ++i) {
    const TimePoint sent = at_us(i * 1000);
    const TimePoint answered = sent + Duration::microseconds(20).scaled(random.exponential());
    const TimePoint received = answered + Duration::microseconds(50).scaled(random.exponential());
    offset.add(sent, answered + truth, received);
    const Duration wrong = offset.offset() - truth;
    EXPECT_LE(wrong, offset.error() + Duration::nanoseconds(1));
    EXPECT_GE(wrong, -(offset.error() + Duration::nanoseconds(1)));
    EXPECT_EQ(offset.to_own(offset.to_host(sent)), sent);
  }
  EXPECT_TRUE(offset.to_host(TimePoint::infinite_future()).is_infinite());
}

TEST(ClockOffsetTest, TheFastestOfTheLastCountsUntilItIsForgotten) {
  ClockOffset offset;
  offset.add(at_us(0), at_us(105), at_us(10));
  EXPECT_EQ(offset.offset(), Duration::microseconds(100));
  for (uint32_t i = 0; i < ClockOffset::kWindow - 1; ++i) offset.add(at_us(0), at_us(550), at_us(100));
  EXPECT_EQ(offset.offset(), Duration::microseconds(100));
  EXPECT_EQ(offset.error(), Duration::microseconds(5));
  offset.add(at_us(0), at_us(550), at_us(100));
  EXPECT_EQ(offset.offset(), Duration::microseconds(500));
}

}  // namespace
}  // namespace foliot
