#include "foundation/base/unlikely_count.h"

#include <gtest/gtest.h>

#include "foundation/base/random.h"

namespace foliot {
namespace {

TEST(UnlikelyCountTest, SoManySuccessesAreRarerThanTheChance) {
  Random random(3);
  for (const double share : {0.002, 0.025, 0.1, 0.25, 0.5}) {
    const uint32_t unlikely = UnlikelyCount(16, 0.01).of(share);
    int as_many = 0;
    int nearly_as_many = 0;
    constexpr int kRounds = 100'000;
    for (int round = 0; round < kRounds; ++round) {
      uint32_t successes = 0;
      for (int i = 0; i < 16; ++i) successes += random.uniform() < share ? 1 : 0;
      if (successes >= unlikely) ++as_many;
      if (successes + 1 >= unlikely) ++nearly_as_many;
    }
    EXPECT_LT(as_many, kRounds / 100 + 150) << share;
    EXPECT_GT(nearly_as_many, kRounds / 100 - 150) << share << ": one fewer is not unlikely";
  }
}

TEST(UnlikelyCountTest, EverySuccessIsUnlikelyWhereNoneIsExpected) {
  const UnlikelyCount count(10);
  EXPECT_EQ(count.of(0), 1u);
  EXPECT_EQ(count.of(1), 11u) << "none is";
}

}  // namespace
}  // namespace foliot
