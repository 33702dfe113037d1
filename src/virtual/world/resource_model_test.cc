#include "virtual/world/resource_model.h"

#include <gtest/gtest.h>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

using Execs = std::vector<std::vector<OperatorLoad>>;

double together(const Execs& execs) { return time_together(execs).to_milliseconds(); }

TEST(ResourceModelTest, WhatFitsBesideEachOtherIsAsFastAsAlone) {
  EXPECT_NEAR(together({{{ms(4), 0.5, 0.2}}, {{ms(3), 0.5, 0.8}}}), 4, 1e-3);
}

TEST(ResourceModelTest, WhatDoesNotFitSlowsAllDownInProportion) {
  EXPECT_NEAR(together({{{ms(4), 1, 0}}, {{ms(4), 1, 0}}}), 8, 1e-3);
  EXPECT_NEAR(together({{{ms(4), 0.6, 0}}, {{ms(4), 0.9, 0}}}), 6, 1e-3);
  EXPECT_NEAR(together({{{ms(4), 0.1, 0.9}}, {{ms(4), 0.1, 0.6}}}), 6, 1e-3) << "memory is what they share";
  // The shorter one ends at 4, when the longer one has 2 ms left.
  EXPECT_NEAR(together({{{ms(2), 1, 0}}, {{ms(4), 1, 0}}}), 6, 1e-3);
}

TEST(ResourceModelTest, OperatorsContendWithWhatRunsBesideThem) {
  // 2 ms at half speed, then both have what they need.
  EXPECT_NEAR(together({{{ms(1), 1, 0}, {ms(3), 0.3, 0}}, {{ms(1), 1, 0}, {ms(2), 0.3, 0}}}), 5, 1e-3);
}

TEST(ResourceModelTest, EndsMoveWhenTheSetOfWhatRunsChanges) {
  ResourceModel model;
  EXPECT_FALSE(model.next_end());
  model.begin(1, {{ms(4), 1, 0}}, at(0));
  EXPECT_EQ(model.next_end()->second, at(4));
  model.begin(2, {{ms(1), 1, 0}}, at(2));
  EXPECT_EQ(model.next_end()->first, 2u);
  EXPECT_EQ(model.next_end()->second, at(4));
  model.end(2, at(4));
  EXPECT_EQ(model.next_end()->first, 1u);
  EXPECT_EQ(model.next_end()->second, at(5)) << "1 ms was left at 4 ms, or it would have ended then";
}

}  // namespace
}  // namespace foliot
