#include "control/policies/foliot/wanted_loads.h"

#include <gtest/gtest.h>

#include <iterator>
#include <vector>

#include "foundation/base/test_time.h"

namespace foliot::foliot_policy {
namespace {

std::vector<uint32_t> models_of(WantedLoads& wanted) {
  std::vector<uint32_t> models;
  for (const WantedLoad& load : wanted) models.push_back(load.model.value());
  return models;
}

TEST(WantedLoadsTest, KeepsEachModelOnceInTheOrderInWhichTheyCame) {
  WantedLoads wanted;
  EXPECT_TRUE(wanted.put({.model = ModelId(7), .since = at(1), .factor = 0.5}));
  EXPECT_TRUE(wanted.put({.model = ModelId(3), .since = at(2)}));
  EXPECT_FALSE(wanted.put({.model = ModelId(7), .since = at(3)}));
  EXPECT_EQ(models_of(wanted), (std::vector<uint32_t>{7, 3}));
  EXPECT_EQ(wanted.begin()->since, at(1)) << "it is wanted since then";
  EXPECT_EQ(wanted.begin()->factor, 1) << "but as it was put last";
}

TEST(WantedLoadsTest, ForgetsWhatIsErased) {
  WantedLoads wanted;
  for (uint32_t id = 0; id < 4; ++id) wanted.put({.model = ModelId(id), .since = at(1)});
  wanted.erase(ModelId(2));
  wanted.erase(ModelId(2));
  wanted.erase(ModelId(1000));
  EXPECT_EQ(wanted.erase(wanted.begin())->model, ModelId(1));
  EXPECT_EQ(models_of(wanted), (std::vector<uint32_t>{1, 3}));
  EXPECT_FALSE(wanted.contains(ModelId(0)));
  EXPECT_TRUE(wanted.contains(ModelId(3)));
  EXPECT_TRUE(wanted.put({.model = ModelId(0), .since = at(5)}));
  EXPECT_EQ(models_of(wanted), (std::vector<uint32_t>{1, 3, 0}));
}

TEST(WantedLoadsTest, WhatWasLookedAtGoesBehindTheOthers) {
  WantedLoads wanted;
  for (uint32_t id = 0; id < 4; ++id) wanted.put({.model = ModelId(id), .since = at(1)});
  wanted.rotate(std::next(wanted.begin(), 3));
  EXPECT_EQ(models_of(wanted), (std::vector<uint32_t>{3, 0, 1, 2}));
  wanted.erase(ModelId(1));
  EXPECT_EQ(models_of(wanted), (std::vector<uint32_t>{3, 0, 2}));
  wanted.rotate(wanted.end());
  EXPECT_EQ(models_of(wanted), (std::vector<uint32_t>{3, 0, 2}));
}

}  // namespace
}  // namespace foliot::foliot_policy
