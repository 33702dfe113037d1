#include "load/workload/popularity.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

std::vector<double> shares(const Popularity& popularity, uint32_t count) {
  constexpr int kDraws = 200'000;
  Random random(5);
  std::vector<double> result(count, 0);
  for (int i = 0; i < kDraws; ++i) result.at(popularity.draw(random)) += 1.0 / kDraws;
  return result;
}

TEST(PopularityTest, UniformIsFair) {
  for (const double share : shares(Popularity(4, 0), 4)) EXPECT_NEAR(share, 0.25, 0.01);
}

TEST(PopularityTest, ZipfFallsWithTheRank) {
  const auto result = shares(Popularity(3, 1), 3);  // 1 : 1/2 : 1/3
  EXPECT_NEAR(result[0], 6.0 / 11, 0.01);
  EXPECT_NEAR(result[1], 3.0 / 11, 0.01);
  EXPECT_NEAR(result[2], 2.0 / 11, 0.01);
}

TEST(PopularityTest, OneModelGetsEverything) {
  Random random(1);
  const Popularity popularity(1, 1.2);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(popularity.draw(random), 0u);
}

}  // namespace
}  // namespace foliot
