#include "foundation/core/linear_extent.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

TEST(LinearExtentTest, RoundsDownAndNeverBelowZero) {
  const LinearExtent frames{.dimension = "samples", .multiplier = 1, .offset = -80, .divisor = 320};
  EXPECT_EQ(frames.of(400), 1);
  EXPECT_EQ(frames.of(719), 1);
  EXPECT_EQ(frames.of(720), 2);
  EXPECT_EQ(frames.of(10), 0);
  EXPECT_EQ((LinearExtent{.dimension = "n", .multiplier = 4, .offset = 1, .divisor = 1}.of(3)), 13);
}

TEST(LinearExtentTest, IsReadFromItsText) {
  for (const LinearExtent& extent : {LinearExtent{.dimension = "sequence"},
                                     LinearExtent{.dimension = "sequence", .multiplier = 1, .offset = 0, .divisor = 2},
                                     LinearExtent{.dimension = "s", .multiplier = 1, .offset = 1, .divisor = 2},
                                     LinearExtent{.dimension = "s", .multiplier = 256, .offset = -7, .divisor = 1},
                                     LinearExtent{.dimension = "a + b", .multiplier = 3, .offset = 2, .divisor = 5}}) {
    EXPECT_EQ(parse_linear_extent(to_string(extent)), extent) << to_string(extent);
  }
  EXPECT_EQ(to_string(LinearExtent{.dimension = "s", .multiplier = 1, .offset = 1, .divisor = 2}), "(s + 1) / 2");
}

TEST(LinearExtentTest, RefusesOtherTexts) {
  for (const char* text : {"", "s / 0", "(s + 1) / 0", "0 * s", "s + 0", "1 * s", "s / 1", "(s) / 2"})
    EXPECT_FALSE(parse_linear_extent(text)) << text;
}

}  // namespace
}  // namespace foliot
