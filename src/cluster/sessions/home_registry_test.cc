#include "cluster/sessions/home_registry.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

TimePoint at(int64_t milliseconds) { return TimePoint() + Duration::milliseconds(milliseconds); }

TEST(HomeRegistryTest, TheFirstListWaitsForFrontEndsToComeBack) {
  HomeRegistry registry;
  ASSERT_TRUE(registry.join(1, {"b", "b:1"}, at(5000)).ok());
  EXPECT_FALSE(registry.take(at(5999)));
  ASSERT_TRUE(registry.join(2, {"a", "a:1"}, at(5999)).ok());
  EXPECT_EQ(registry.next(), at(6000));
  const std::optional<Homes> homes = registry.take(at(6000));
  ASSERT_TRUE(homes);
  ASSERT_EQ(homes->homes.size(), 2u);
  EXPECT_EQ(homes->homes[0].name, "a");
  EXPECT_EQ(homes->homes[1].address, "b:1");
  EXPECT_FALSE(registry.take(at(6001))) << "nothing has changed";
  EXPECT_TRUE(registry.next().is_infinite());
}

TEST(HomeRegistryTest, EachListHasAnEpochOfItsOwn) {
  HomeRegistry registry;
  ASSERT_TRUE(registry.join(1, {"a", "a:1"}, at(0)).ok());
  const uint64_t first = registry.take(at(1000))->epoch;
  ASSERT_TRUE(registry.join(2, {"b", "b:1"}, at(1000)).ok());
  const uint64_t second = registry.take(at(1000))->epoch;
  registry.leave(2);
  const std::optional<Homes> third = registry.take(at(1000));
  ASSERT_TRUE(third);
  EXPECT_EQ(third->homes.size(), 1u);
  EXPECT_LT(first, second);
  EXPECT_LT(second, third->epoch);
}

TEST(HomeRegistryTest, ARestartedFrontEndTakesItsPlaceAgain) {
  HomeRegistry registry;
  ASSERT_TRUE(registry.join(1, {"a", "a:1"}, at(0)).ok());
  ASSERT_TRUE(registry.take(at(1000)));
  ASSERT_TRUE(registry.join(2, {"a", "a:2"}, at(2000)).ok());
  registry.leave(1);
  const std::optional<Homes> homes = registry.take(at(2000));
  ASSERT_TRUE(homes);
  ASSERT_EQ(homes->homes.size(), 1u);
  EXPECT_EQ(homes->homes[0].address, "a:2");
}

TEST(HomeRegistryTest, FrontEndsAreLimited) {
  HomeRegistry registry;
  for (size_t i = 0; i < kHomesMax; ++i) {
    ASSERT_TRUE(registry.join(i, {std::to_string(i), "a:1"}, at(0)).ok());
  }
  const Status status = registry.join(kHomesMax, {"one more", "a:1"}, at(0));
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("limit of 1024"), std::string::npos);
}

}  // namespace
}  // namespace foliot
