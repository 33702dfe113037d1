#include "foundation/base/units.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

TEST(UnitsTest, ReadsWhatPeopleWrite) {
  EXPECT_EQ(*parse_duration("50ms"), Duration::milliseconds(50));
  EXPECT_EQ(*parse_duration("1.5 s"), Duration::milliseconds(1500));
  EXPECT_EQ(*parse_duration("2m"), Duration::seconds(120));
  EXPECT_EQ(*parse_bytes("256MiB"), uint64_t{256} << 20);
  EXPECT_EQ(*parse_bytes("1.5kB"), 1500u);
}

TEST(UnitsTest, RefusesTheRestAndShowsHow) {
  for (const char* text : {"", "50", "ms", "-1s", "nan s", "1e300h", "5 minutes", "50msx"}) {
    const auto result = parse_duration(text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_NE(result.status().message().find("50ms"), std::string::npos);
  }
  for (const char* text : {"", "12", "12 mib", "-1MiB", "1e30GiB"}) EXPECT_FALSE(parse_bytes(text).ok()) << text;
}

TEST(UnitsTest, WritesThreeDigits) {
  EXPECT_EQ(format_duration(Duration::microseconds(12345)), "12.3 ms");
  EXPECT_EQ(format_bytes(uint64_t{3} << 29), "1.50 GiB");
}

}  // namespace
}  // namespace foliot
