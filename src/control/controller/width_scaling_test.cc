#include "control/controller/width_scaling.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

Duration ms(int64_t n) { return Duration::milliseconds(n); }

TEST(WidthScalingTest, BeginsInProportion) {
  const WidthScaling scaling(6);  // widths of 6, 4, 2 and 1
  EXPECT_EQ(scaling.narrower(width_index(4, 6), ms(8)), ms(12));
  EXPECT_EQ(scaling.narrower(width_index(2, 6), ms(8)), ms(16));
  EXPECT_EQ(scaling.narrower(width_index(1, 6), ms(8)), ms(16));
}

TEST(WidthScalingTest, LearnsEachStepAlone) {
  WidthScaling scaling(4);
  EXPECT_TRUE(scaling.record(width_index(2, 4), ms(10), width_index(4, 4), ms(8)));
  EXPECT_EQ(scaling.narrower(width_index(2, 4), ms(8)), ms(10));
  EXPECT_EQ(scaling.narrower(width_index(1, 4), ms(8)), ms(16));
  EXPECT_FALSE(scaling.record(width_index(2, 4), ms(10), width_index(4, 4), ms(8)));
}

TEST(WidthScalingTest, WhatTookNoTimeTeachesNothing) {
  WidthScaling scaling(4);
  const Duration before = scaling.narrower(1, ms(10));
  EXPECT_FALSE(scaling.record(1, ms(2), 0, Duration()));
  EXPECT_EQ(scaling.narrower(1, ms(10)), before);
}

// 20 ms, and 320 divided by the lanes.
TEST(WidthScalingTest, StepsBetweenFollowAmdahlsLaw) {
  WidthScaling scaling(4);
  scaling.record(width_index(1, 4), ms(340), width_index(4, 4), ms(100));
  EXPECT_NEAR(scaling.narrower(width_index(2, 4), ms(100)).to_milliseconds(), 180, 100.0 / WidthScaling::kParts);
  EXPECT_NEAR(scaling.narrower(width_index(1, 4), ms(180)).to_milliseconds(), 340, 180.0 / WidthScaling::kParts);
}

TEST(WidthScalingTest, TheLargestOfTheLastRatiosCounts) {
  WidthScaling scaling(2);
  scaling.record(1, ms(15), 0, ms(10));
  for (uint32_t i = 1; i < WidthScaling::kWindow; ++i) scaling.record(1, ms(10), 0, ms(10));
  EXPECT_EQ(scaling.narrower(1, ms(10)), ms(15));
  EXPECT_TRUE(scaling.record(1, ms(10), 0, ms(10)));
  EXPECT_EQ(scaling.narrower(1, ms(10)), ms(10));
}

TEST(WidthScalingTest, NoRatioIsBelowOneOrAboveProportion) {
  WidthScaling scaling(2);
  scaling.record(1, ms(2), 0, ms(10));
  EXPECT_EQ(scaling.narrower(1, ms(10)), ms(10));
  scaling.record(1, ms(1000), 0, ms(10));
  EXPECT_EQ(scaling.narrower(1, ms(10)), ms(20));
}

}  // namespace
}  // namespace foliot
