#include "answer/personal/weights/population.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "answer/personal/weights/observation_table.h"
#include "foundation/base/random.h"

namespace foliot {
namespace {

class PopulationTest : public testing::Test {
 protected:
  void observe(uint64_t user, std::vector<float> values) {
    std::vector<UserObservation> all;
    for (const float value : values) all.push_back({.id = ++id_, .item = id_, .value = value});
    users_.add(user, ++number_, all);
  }
  const Population& population() const { return users_.population(); }
  ObservationTable users_;
  uint64_t id_ = 0;
  uint64_t number_ = 0;
};

TEST_F(PopulationTest, TheRangeIsWhatSeveralUsersHaveSeen) {
  EXPECT_EQ(population().range(), ValueRange::all());
  for (uint64_t user = 1; user <= 80; ++user) observe(user, {1, 3, 5});
  for (uint64_t user = 81; user <= 90; ++user) observe(user, {1e9F, -1e9F, 3e38F});
  EXPECT_LT(population().range().low, 1);
  EXPECT_GT(population().range().low, -2);
  EXPECT_GT(population().range().high, 5);
  EXPECT_LT(population().range().high, 8);
  EXPECT_EQ(population().users_outside(), 20u) << "each is below and above";
  const uint64_t revision = population().range_revision();
  for (int again = 0; again < 100; ++again) observe(81, {2e9F});
  EXPECT_EQ(population().range_revision(), revision) << "a user counts once, whatever number of observations it has";
}

TEST_F(PopulationTest, AValueThatIsNewIsInTheRangeOnceSixteenUsersHaveIt) {
  for (uint64_t user = 1; user <= 1000; ++user) observe(user, {0, 0});
  for (uint64_t user = 1; user <= 15; ++user) observe(user, {1});
  EXPECT_FALSE(population().range().contains(1));
  observe(16, {1});
  EXPECT_TRUE(population().range().contains(1));
}

TEST_F(PopulationTest, AUserThatIsAloneHasItsOwnRange) {
  observe(1, {1e6F, 2});
  EXPECT_TRUE(population().range().contains(1e6F));
  EXPECT_TRUE(population().range().contains(2));
}

// Whatever came, left, or was counted before.
TEST_F(PopulationTest, ItFollowsFromTheUsersThatThereAre) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    ObservationTable users;
    uint64_t number = 0;
    uint64_t id = 0;
    for (int step = 0; step < 20'000; ++step) {
      const uint64_t user = random.below(3000);
      // It grows, shrinks, and grows.
      if (random.below(10) < (step / 5000 == 2 ? 9 : 1)) {
        users.remove(user, ++number);
        continue;
      }
      std::vector<UserObservation> some(1 + random.below(4));
      for (UserObservation& one : some) one = {++id, random.below(50), static_cast<float>(random.normal())};
      users.add(user, ++number, some);
      if (step % 1000 != 999) continue;
      ObservationTable fresh;
      for (size_t place = users.places(); place-- > 0;) {
        if (users.user(place).is_used) fresh.restore(users.user(place));
      }
      const Population& a = users.population();
      const Population& b = fresh.population();
      ASSERT_EQ(a.users(), users.users());
      ASSERT_EQ(a.range(), b.range());
      const auto sampled_of = [](const Population& one) {
        std::map<uint64_t, std::pair<std::vector<uint64_t>, std::vector<float>>> sampled;
        for (const auto& [each, of_user] : one.kept()) {
          if (one.is_sampled(of_user)) sampled[each] = {of_user.items, of_user.values};
        }
        return sampled;
      };
      const auto sampled = sampled_of(a);
      ASSERT_LE(sampled.size(), Population::kSampledMax);
      ASSERT_LE(a.kept().size(), Population::kKeptMax);
      ASSERT_GE(sampled.size(), std::min<size_t>(users.users(), 400));
      ASSERT_EQ(sampled, sampled_of(b));
      const Population again(a.state());
      ASSERT_EQ(again.range(), a.range());
      ASSERT_EQ(sampled, sampled_of(again));
    }
  }
}

}  // namespace
}  // namespace foliot
