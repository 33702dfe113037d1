#include "cluster/sessions/home_view.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace foliot {
namespace {

HomeView view_of(const std::vector<std::string>& names) {
  Homes homes{.epoch = 1, .homes = {}};
  for (const std::string& name : names) homes.homes.push_back({name, name + ":1"});
  return HomeView(homes);
}

TEST(HomeViewTest, UsersAreSpreadOverAllFrontEnds) {
  const HomeView view = view_of({"a", "b", "c"});
  std::map<std::string, int> first;
  std::map<std::string, int> second;
  for (uint64_t user = 0; user < 3000; ++user) {
    const std::vector<std::string> homes = view.homes_of(user, 2);
    ASSERT_EQ(homes.size(), 2u);
    EXPECT_NE(homes[0], homes[1]);
    ++first[homes[0]];
    ++second[homes[1]];
  }
  for (const std::string name : {"a", "b", "c"}) {
    EXPECT_NEAR(first[name], 1000, 100) << name;
    EXPECT_NEAR(second[name], 1000, 100) << name;
  }
}

TEST(HomeViewTest, AFrontEndThatGoesChangesTheHomesOfItsOwnUsersOnly) {
  const HomeView before = view_of({"a", "b", "c", "d"});
  const HomeView after = view_of({"a", "b", "d"});
  for (uint64_t user = 0; user < 1000; ++user) {
    const std::vector<std::string> old_homes = before.homes_of(user, 2);
    const std::vector<std::string> homes = after.homes_of(user, 2);
    if (old_homes[0] == "c") {
      EXPECT_EQ(homes[0], old_homes[1]) << "the second home has all that the first had";
    } else {
      EXPECT_EQ(homes[0], old_homes[0]);
      if (old_homes[1] != "c") {
        EXPECT_EQ(homes, old_homes);
      }
    }
  }
}

TEST(HomeViewTest, HomesDoNotDependOnTheOrderOfNames) {
  for (uint64_t user = 0; user < 100; ++user) {
    EXPECT_EQ(view_of({"a", "b", "c"}).homes_of(user, 2), view_of({"c", "a", "b"}).homes_of(user, 2));
  }
}

TEST(HomeViewTest, ThereAreNoMoreHomesThanFrontEnds) {
  EXPECT_EQ(view_of({"a"}).homes_of(7, 2), std::vector<std::string>{"a"});
  EXPECT_TRUE(HomeView().homes_of(7, 2).empty());
  EXPECT_EQ(view_of({"a", "b"}).homes_of(7, 1).size(), 1u);
}

}  // namespace
}  // namespace foliot
