#include "edge/requests/body_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using testing::HasSubstr;

TEST(BodyBudgetTest, ASourceMayHaveAsMuchAsIsFree) {
  BodyBudget budget(90);
  EXPECT_TRUE(budget.resize("a", 0, 15));
  EXPECT_TRUE(budget.resize("a", 0, 30)) << "45 of it, 45 free";
  EXPECT_FALSE(budget.resize("a", 0, 1));
  EXPECT_FALSE(budget.resize("a", 30, 31)) << "one that grows, too";
  EXPECT_TRUE(budget.resize("b", 0, 10));
  EXPECT_TRUE(budget.resize("b", 0, 10)) << "20 of it, 25 free";
  EXPECT_FALSE(budget.resize("b", 0, 5));
  EXPECT_TRUE(budget.resize("a", 30, 0));
  EXPECT_TRUE(budget.resize("b", 0, 5));
}

TEST(BodyBudgetTest, OneBodyHasRoomHoweverLongItIs) {
  BodyBudget budget(90);
  EXPECT_TRUE(budget.resize("a", 0, 80));
  EXPECT_TRUE(budget.resize("b", 0, 10));
  EXPECT_FALSE(budget.resize("c", 0, 1)) << "all have no more than all";
  EXPECT_FALSE(budget.resize("", 0, 1));
  EXPECT_TRUE(budget.resize("a", 80, 79));
  EXPECT_TRUE(budget.resize("", 0, 1)) << "of no source";
}

TEST(BodyBudgetTest, ARefusalNamesWhatIsInTheWay) {
  BodyBudget budget(90);
  EXPECT_TRUE(budget.resize("a", 0, 60));
  EXPECT_FALSE(budget.resize("a", 60, 91));
  EXPECT_THAT(budget.refusal("a", 60), HasSubstr("longer than the 90 bytes for all bodies")) << "it is alone";
  EXPECT_THAT(budget.refusal("a", 0), HasSubstr("bodies of 'a' under way take 60 bytes")) << "another of its own";
  EXPECT_TRUE(budget.resize("b", 0, 20));
  EXPECT_THAT(budget.refusal("b", 20), HasSubstr("requests under way fill the 90 bytes")) << "that of another";
  EXPECT_THAT(budget.refusal("", 0), HasSubstr("requests under way fill the 90 bytes"));
}

TEST(BodyBudgetTest, WhatIsAddedCountsBeyondTheLimit) {
  BodyBudget budget(90);
  budget.add("a", 45);
  EXPECT_FALSE(budget.is_exceeded_by("a"));
  budget.add("a", 1);
  EXPECT_TRUE(budget.is_exceeded_by("a"));
  EXPECT_FALSE(budget.is_exceeded_by("b"));
  budget.add("b", 60);
  EXPECT_TRUE(budget.resize("b", 60, 0)) << "to give back is always possible";
  EXPECT_TRUE(budget.resize("a", 46, 45));
  EXPECT_FALSE(budget.is_exceeded_by("a"));
}

}  // namespace
}  // namespace foliot
