#include "controller/overlap_predictor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/random.h"
#include "base/test_time.h"

namespace foliot {
namespace {

constexpr ModelId kOneModel{3}, kOtherModel{5}, kStranger{7};

ExecSegment half_of(ModelId model, Duration alone) {
  return {.shape = {.model = model}, .range = {0, 4}, .operator_count = 8, .whole = alone * 2, .alone = alone};
}

// Untrained: its corrections are anything.
OverlapPredictor untrained(uint64_t seed) {
  Random random(seed);
  return OverlapPredictor({kOneModel, kOtherModel}, Mlp(2 * OverlapPredictor::kFeatures, random));
}

Duration predict(const OverlapPredictor& predictor, const std::vector<ExecSegment>& group) {
  const std::array<std::span<const ExecSegment>, 1> groups{group};
  std::array<Duration, 1> durations;
  predictor.predict(groups, durations);
  return durations[0];
}

TEST(OverlapPredictorTest, WhatIsNotKnownGainsNothing) {
  const OverlapPredictor made = untrained(1);
  EXPECT_EQ(predict(made, {half_of(kOneModel, ms(4))}), ms(4)) << "alone";
  EXPECT_EQ(predict(made, {half_of(kOneModel, ms(4)), half_of(kStranger, ms(3))}), ms(7));
  EXPECT_EQ(predict(made, {half_of(kOneModel, ms(4)), half_of(kOneModel, ms(3))}), ms(7)) << "twice";
}

// Corrections below the longest segment's share are cut off, others are not.
TEST(OverlapPredictorTest, AGroupTakesAtLeastItsLongestSegment) {
  int at_least = 0, above = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Duration taken = predict(untrained(seed), {half_of(kOneModel, ms(4)), half_of(kOtherModel, ms(3))});
    EXPECT_GE(taken, ms(4)) << seed;
    (taken == ms(4) ? at_least : above) += 1;
  }
  EXPECT_GT(at_least, 0);
  EXPECT_GT(above, 0);
}

TEST(OverlapPredictorTest, FeaturesAreOfEachModelInItsPlace) {
  OverlapPredictor::Features features;
  const std::vector<ExecSegment> group{half_of(kOtherModel, ms(3)), half_of(kOneModel, ms(1))};
  ASSERT_TRUE(OverlapPredictor::features(std::array{kOneModel, kOtherModel}, group, features));
  EXPECT_FLOAT_EQ(features[0], 1);
  EXPECT_FLOAT_EQ(features[1], 0);
  EXPECT_FLOAT_EQ(features[2], 0.5F);
  EXPECT_FLOAT_EQ(features[4], 0.25F);
  EXPECT_FLOAT_EQ(features[OverlapPredictor::kFeatures + 4], 0.75F);
}

}  // namespace
}  // namespace foliot
