#include "node/repository/compile_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace foliot {
namespace {

using testing::ElementsAre;
using enum CompileOrder::Step;

std::vector<std::string> take_all(CompileOrder& order) {
  std::vector<std::string> all;
  while (const auto next = order.take()) all.push_back(next->model + (next->step == kFirst ? " first" : " whole"));
  return all;
}

TEST(CompileOrderTest, TheFirstStepOfAllComesBeforeTheSecondOfAny) {
  CompileOrder order;
  order.add("a", kWhole);
  order.add("b", kFirst);
  order.add("c", kWhole);
  order.add("d", kFirst);
  EXPECT_THAT(take_all(order), ElementsAre("b first", "d first", "a whole", "c whole"));
}

TEST(CompileOrderTest, WhatClientsAskForComesFirstInItsStep) {
  CompileOrder order;
  for (const char* model : {"a", "b", "c", "d"}) order.add(model, kFirst);
  for (const char* model : {"x", "y"}) order.add(model, kWhole);
  for (const char* model : {"y", "d", "b", "d", "nothing"}) order.ask_for(model);
  EXPECT_THAT(take_all(order), ElementsAre("d first", "b first", "a first", "c first", "y whole", "x whole"));
}

TEST(CompileOrderTest, AModelWaitsForOneStep) {
  CompileOrder order;
  order.add("a", kFirst);
  order.add("b", kFirst);
  order.ask_for("b");
  order.add("b", kWhole);
  order.add("c", kFirst);
  EXPECT_EQ(order.remove("c"), kFirst);
  EXPECT_EQ(order.remove("c"), std::nullopt);
  EXPECT_TRUE(order.waits(kFirst) && order.waits(kWhole));
  EXPECT_THAT(take_all(order), ElementsAre("a first", "b whole"));
  EXPECT_THAT(take_all(order), ElementsAre());
}

}  // namespace
}  // namespace foliot
