#include "foundation/platform/core_set.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

std::string error_of(std::string_view text) { return parse_core_set(text).status().message(); }

TEST(CoreSetTest, ReadsWhatTheKernelWrites) {
  EXPECT_EQ(parse_core_set("0-3,8,10-11").value(), (CoreSet{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_core_set("7").value(), CoreSet{7});
  EXPECT_EQ(parse_core_set("5,1").value(), (CoreSet{1, 5}));
  EXPECT_TRUE(parse_core_set("").value().empty());
}

TEST(CoreSetTest, WritesRanges) {
  EXPECT_EQ(to_string(CoreSet{0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
  EXPECT_EQ(to_string(CoreSet{}), "");
}

TEST(CoreSetTest, RefusesWhatIsNoSet) {
  for (const char* text : {"x", "1-", "-1", "3-1", "1,", ",1", "1;2", "0x1", "1 2", "99999999999"}) {
    EXPECT_FALSE(parse_core_set(text).ok()) << text;
  }
  EXPECT_EQ(error_of("a-b"), "'a-b' is no set of cores; write it like 0-15 or 0,2,4-7");
  EXPECT_EQ(error_of("1020-1024"), "core 1024 is beyond the limit of 1023");
  EXPECT_EQ(error_of("0-3,2"), "core 2 is named twice");
}

}  // namespace
}  // namespace foliot
