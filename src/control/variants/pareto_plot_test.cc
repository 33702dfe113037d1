#include "control/variants/pareto_plot.h"

#include <gtest/gtest.h>

#include <vector>

namespace foliot {
namespace {

TEST(ParetoPlot, TheFrontHasWhatNoOtherIsAtLeastAsGoodAs) {
  const std::vector<ParetoPoint> points{{"cheap", 1, 0.7}, {"dearer", 2, 0.7}, {"good", 2, 0.9}, {"worse", 3, 0.8}};
  EXPECT_EQ(pareto_front(points), (std::vector{true, false, true, false}));
}

}  // namespace
}  // namespace foliot
