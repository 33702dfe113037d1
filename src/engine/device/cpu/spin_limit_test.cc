#include "engine/device/cpu/spin_limit.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

constexpr Duration kLong = SpinLimit::kSpinAlone * 2;

TEST(SpinLimit, EndsWithLongWaitsAndComesBackWithShortOnes) {
  SpinLimit spins;
  for (int wait = 0; wait < 100; ++wait) {
    EXPECT_EQ(spins.longest(), SpinLimit::kSpinAlone);
    spins.waited(wait % 2 == 0 ? Duration() : kLong, false);
  }
  for (int wait = 0; wait < 100; ++wait) spins.waited(kLong, false);
  EXPECT_EQ(spins.longest(), Duration());
  for (int wait = 0; wait < 10; ++wait) spins.waited(Duration(), false);
  EXPECT_EQ(spins.longest(), SpinLimit::kSpinAlone);
}

TEST(SpinLimit, IsLessWhereOthersTookTheCore) {
  SpinLimit spins;
  spins.waited(Duration(), true);
  EXPECT_EQ(spins.longest(), SpinLimit::kSpinBesideOthers);
  for (int wait = 0; wait < 4; ++wait) spins.waited(SpinLimit::kSpinBesideOthers * 2, false);
  EXPECT_EQ(spins.longest(), Duration());
  for (int wait = 0; wait < 1000; ++wait) spins.waited(SpinLimit::kSpinBesideOthers / 2, false);
  EXPECT_EQ(spins.longest(), SpinLimit::kSpinAlone);
}

}  // namespace
}  // namespace foliot
