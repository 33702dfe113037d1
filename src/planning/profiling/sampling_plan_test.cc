#include "planning/profiling/sampling_plan.h"

#include <gtest/gtest.h>

#include <map>

namespace foliot {
namespace {

TEST(SamplingPlanTest, PairsAndBucketsTakeTurns) {
  const SamplingPlan plan({{10, 2}, {20, 3}, {30, 1}}, 1), other({{10, 2}, {20, 3}, {30, 1}}, 2);
  ASSERT_EQ(plan.pairs().size(), 3u);
  std::map<std::pair<uint32_t, uint32_t>, std::map<std::pair<uint32_t, uint32_t>, int>> counts;
  int equal = 0;
  for (uint64_t number = 0; number < 3 * 60; ++number) {
    const auto group = plan.group(number), again = plan.group(number), of_other = other.group(number);
    ASSERT_EQ(group.size(), 2u);
    ++counts[{group[0].model, group[1].model}][{group[0].bucket, group[1].bucket}];
    EXPECT_EQ(group[0].range, again[0].range);
    equal += group[0].range == of_other[0].range && group[1].range == of_other[1].range;
  }
  EXPECT_LT(equal, 90) << "the seed counts";
  ASSERT_EQ(counts.size(), 3u);
  for (const auto& [pair, buckets] : counts) {
    const size_t combinations = pair == std::pair(0u, 1u) ? 6 : pair == std::pair(0u, 2u) ? 2 : 3;
    EXPECT_EQ(buckets.size(), combinations);
    for (const auto& [bucket, count] : buckets) EXPECT_EQ(count, 60 / static_cast<int>(combinations));
  }
}

TEST(SamplingPlanTest, EnoughIsWhenTheErrorDoesNotFallTwice) {
  FallingError error;
  EXPECT_TRUE(error.still_falls(0.2));
  EXPECT_TRUE(error.still_falls(0.1));
  EXPECT_TRUE(error.still_falls(0.095)) << "once";
  EXPECT_TRUE(error.still_falls(0.05)) << "it falls again";
  EXPECT_TRUE(error.still_falls(0.06));
  EXPECT_FALSE(error.still_falls(0.049));
}

}  // namespace
}  // namespace foliot
