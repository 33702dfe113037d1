#include "observe/request_log/time_parts.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

TimePoint instant(int64_t ms) { return TimePoint() + Duration::milliseconds(ms); }
Duration ms(int64_t count) { return Duration::milliseconds(count); }

TEST(TimePartsTest, NoInstantCountsTwice) {
  TimeParts parts(instant(10), instant(30));
  EXPECT_EQ(parts.take(instant(0), instant(12)), ms(2));
  EXPECT_EQ(parts.take(instant(15), instant(20)), ms(5));
  EXPECT_EQ(parts.take(instant(11), instant(22)), ms(5)) << "12 to 15, and 20 to 22";
  EXPECT_EQ(parts.left(), ms(8));
  EXPECT_EQ(parts.take(instant(0), instant(100)), ms(8));
  EXPECT_EQ(parts.left(), Duration());
}

TEST(TimePartsTest, TheEarliestGoesFirst) {
  TimeParts parts(instant(0), instant(10));
  parts.take(instant(2), instant(4));
  EXPECT_EQ(parts.take_earliest(ms(3)), ms(3));
  EXPECT_EQ(parts.take(instant(0), instant(6)), ms(1)) << "5 to 6 is left of it";
  EXPECT_EQ(parts.take_earliest(ms(100)), ms(4));
}

TEST(TimePartsTest, AnEmptyIntervalHasNothing) {
  TimeParts parts(instant(5), instant(5));
  EXPECT_EQ(parts.take(instant(0), instant(10)), Duration());
  EXPECT_EQ(TimeParts(instant(6), instant(5)).left(), Duration());
}

}  // namespace
}  // namespace foliot
