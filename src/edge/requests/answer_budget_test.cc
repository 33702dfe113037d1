#include "edge/requests/answer_budget.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

TEST(AnswerBudgetTest, ASourceHasAQuarterAndAllHaveAll) {
  AnswerBudget budget(100);
  EXPECT_TRUE(budget.hold("a", 25));
  EXPECT_FALSE(budget.hold("a", 1));
  EXPECT_TRUE(budget.hold("b", 25));
  EXPECT_TRUE(budget.hold("c", 25));
  EXPECT_TRUE(budget.hold("d", 20));
  EXPECT_FALSE(budget.hold("e", 6));
  EXPECT_TRUE(budget.hold("e", 5));
  EXPECT_EQ(budget.bytes(), 100u);
  budget.release("a", 25);
  EXPECT_TRUE(budget.hold("a", 20));
  EXPECT_EQ(budget.bytes(), 95u);
}

TEST(AnswerBudgetTest, OneAnswerHasRoomHoweverLongItIs) {
  AnswerBudget budget(100);
  EXPECT_TRUE(budget.hold("a", 200));
  EXPECT_FALSE(budget.hold("b", 1));
  budget.release("a", 200);
  EXPECT_TRUE(budget.hold("a", 10));
  EXPECT_TRUE(budget.hold("b", 60));
  EXPECT_FALSE(budget.hold("c", 60));
}

TEST(AnswerBudgetTest, WhatIsAddedCountsBeyondTheLimit) {
  AnswerBudget budget(100);
  budget.add("a", 25);
  EXPECT_FALSE(budget.is_exceeded_by("a"));
  budget.add("a", 1);
  EXPECT_TRUE(budget.is_exceeded_by("a"));
  EXPECT_FALSE(budget.is_exceeded_by("b"));
  budget.add("b", 80);
  EXPECT_TRUE(budget.is_exceeded_by("c"));
  budget.release("b", 80);
  EXPECT_FALSE(budget.is_exceeded_by("c"));
}

}  // namespace
}  // namespace foliot
