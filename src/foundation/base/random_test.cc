#include "foundation/base/random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foliot {
namespace {

constexpr int kDraws = 200'000;

template <typename Draw>
std::pair<double, double> mean_and_deviation(Draw draw) {
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = draw();
    sum += x;
    squares += x * x;
  }
  const double mean = sum / kDraws;
  return {mean, std::sqrt(squares / kDraws - mean * mean)};
}

// The same on every compiler and standard library: xoshiro256** from SplitMix64(1).
TEST(RandomTest, ASeedGivesTheSameNumbersForEver) {
  Random random(1);
  EXPECT_EQ(random.next(), 0xb3f2af6d0fc710c5ULL);
  EXPECT_EQ(random.next(), 0x853b559647364ceaULL);
}

TEST(RandomTest, DistributionsHaveTheirMoments) {
  Random random(7);
  const auto exponential = mean_and_deviation([&] { return random.exponential(); });
  EXPECT_NEAR(exponential.first, 1, 0.02);
  EXPECT_NEAR(exponential.second, 1, 0.03);
  const auto normal = mean_and_deviation([&] { return random.normal(); });
  EXPECT_NEAR(normal.first, 0, 0.02);
  EXPECT_NEAR(normal.second, 1, 0.02);
  for (const double cv : {0.5, 1.0, 2.0, 4.0}) {
    const auto gamma = mean_and_deviation([&] { return random.gamma_with_variation(cv); });
    EXPECT_NEAR(gamma.first, 1, 0.05 * cv) << cv;
    EXPECT_NEAR(gamma.second, cv, 0.1 * cv) << cv;
  }
}

TEST(RandomTest, BelowIsUniform) {
  Random random(3);
  int counts[7] = {};
  for (int i = 0; i < 70'000; ++i) ++counts[random.below(7)];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 400);
}

}  // namespace
}  // namespace foliot
