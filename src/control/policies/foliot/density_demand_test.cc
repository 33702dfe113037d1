#include "control/policies/foliot/density_demand.h"

#include <gtest/gtest.h>

namespace foliot::foliot_policy {
namespace {

TEST(DensityDemandTest, DenserModelsAreSummedUpByKind) {
  DensityDemand demand;
  demand.set(ModelId(0), KindId(0), 0.5, 100);
  demand.set(ModelId(1), KindId(0), 0.25, 400);
  demand.set(ModelId(2), KindId(1), 2, 800);
  EXPECT_DOUBLE_EQ(demand.denser(KindId(0), 50), 0.75);
  EXPECT_DOUBLE_EQ(demand.denser(KindId(0), 100), 0.25) << "not its own class";
  EXPECT_DOUBLE_EQ(demand.denser(KindId(0), 101), 0.25) << "nor what is hardly denser";
  EXPECT_DOUBLE_EQ(demand.denser(KindId(0), 400), 0);
  EXPECT_DOUBLE_EQ(demand.denser(KindId(1), 100), 2);
  EXPECT_DOUBLE_EQ(demand.denser(KindId(2), 0), 0);
}

TEST(DensityDemandTest, WhatAModelNeedsTakesThePlaceOfWhatItNeeded) {
  DensityDemand demand;
  demand.set(ModelId(0), KindId(0), 0.5, 100);
  demand.set(ModelId(0), KindId(1), 0.25, 1000);
  EXPECT_DOUBLE_EQ(demand.denser(KindId(0), 1), 0);
  EXPECT_DOUBLE_EQ(demand.denser(KindId(1), 1), 0.25);
  demand.forget(ModelId(0));
  demand.forget(ModelId(7));
  EXPECT_DOUBLE_EQ(demand.denser(KindId(1), 1), 0);
}

TEST(DensityDemandTest, AnyDensityHasAClass) {
  EXPECT_EQ(DensityDemand::density_class(0), 0u);
  EXPECT_LT(DensityDemand::density_class(1), DensityDemand::density_class(2));
  EXPECT_EQ(DensityDemand::density_class(1e30), DensityDemand::density_class(1e20));
}

}  // namespace
}  // namespace foliot::foliot_policy
