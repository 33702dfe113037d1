#include "control/policies/adaptive_batching/batch_limit.h"

#include <gtest/gtest.h>

#include <vector>

namespace foliot::adaptive_batching {
namespace {

const std::vector<uint32_t> kSizes{1, 2, 4, 8, 16};
Duration milliseconds(double n) { return Duration::from_milliseconds(n); }

TEST(BatchLimitTest, AimdAddsOneUntilTheObjectiveIsExceededAndTakesATenth) {
  BatchLimit limit(Method::kAimd);
  EXPECT_EQ(limit.batch_index(kSizes), 0u);
  limit.record(1, milliseconds(2), milliseconds(10), kSizes);
  EXPECT_EQ(limit.rows(), 2);
  EXPECT_EQ(limit.batch_index(kSizes), 1u);
  limit.record(1, milliseconds(2), milliseconds(10), kSizes);
  EXPECT_EQ(limit.rows(), 2) << "a smaller batch shows nothing";
  for (int i = 0; i < 6; ++i)
    limit.record(kSizes[limit.batch_index(kSizes)], milliseconds(5), milliseconds(10), kSizes);
  EXPECT_EQ(limit.rows(), 8);
  limit.record(8, milliseconds(11), milliseconds(10), kSizes);
  EXPECT_DOUBLE_EQ(limit.rows(), 7.2);
  EXPECT_EQ(kSizes[limit.batch_index(kSizes)], 4u);
  for (int i = 0; i < 100; ++i)
    limit.record(kSizes[limit.batch_index(kSizes)], milliseconds(5), milliseconds(10), kSizes);
  EXPECT_EQ(limit.rows(), 16);
}

TEST(BatchLimitTest, AimdStaysAboveZero) {
  BatchLimit limit(Method::kAimd);
  for (int i = 0; i < 10; ++i) limit.record(1, milliseconds(20), milliseconds(10), kSizes);
  EXPECT_EQ(limit.batch_index(kSizes), 0u);
}

TEST(BatchLimitTest, RegressionSettlesAtWhatTheLineAllows) {
  BatchLimit limit(Method::kQuantileRegression);
  for (int i = 0; i < 50; ++i) {
    const uint32_t size = kSizes[limit.batch_index(kSizes)];
    limit.record(size, milliseconds(1 + 0.5 * size), milliseconds(6), kSizes);
    EXPECT_LE(size, 8u);
  }
  // 1 + 0.5 * 8 = 5 ms fits, 9 ms does not.
  EXPECT_EQ(kSizes[limit.batch_index(kSizes)], 8u);
}

TEST(LatencyLineTest, LiesAboveAlmostAllSamples) {
  LatencyLine line;
  EXPECT_EQ(line.batch_within(milliseconds(10)), 1);
  for (const uint32_t size : {1u, 2u, 4u}) {
    for (const double noise : {0.0, 0.1, 0.2}) line.add(size, milliseconds(1 + size + noise));
  }
  // Of the upper ones: 1.2 + size.
  EXPECT_NEAR(line.batch_within(milliseconds(9.2)), 8, 0.01);
}

}  // namespace
}  // namespace foliot::adaptive_batching
