#include "virtual/bounds/fluid_estimate.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

const ModelProfile& resnet50() { return *ProfileTable::v100().find("resnet50"); }

TEST(FluidEstimateTest, DurationsAreLinearBetweenProfiledSizes) {
  EXPECT_EQ(batch_duration(resnet50(), 1), Duration::microseconds(2'610));
  EXPECT_EQ(batch_duration(resnet50(), 3), Duration::microseconds(4'695));
  EXPECT_EQ(batch_duration(resnet50(), 16), Duration::microseconds(15'670));
}

TEST(FluidEstimateTest, BatchesSolveTheirEquation) {
  const FluidFlow flow{&resnet50(), 100, Duration::milliseconds(50)};
  const double batch = fluid_batch(flow);
  const double duration = batch_duration(resnet50(), batch).to_seconds();
  EXPECT_NEAR(batch, 1 + 100 * (0.05 - duration), 1e-3);
  EXPECT_EQ(fluid_batch({&resnet50(), 100, Duration::milliseconds(2)}), 0);
  EXPECT_NEAR(fluid_batch({&resnet50(), 1e6, Duration::seconds(1)}), 16, 1e-6);
  EXPECT_EQ(fluid_batch({&resnet50(), 1, Duration::max()}), 16);
}

TEST(FluidEstimateTest, OneDeviceServesAsManyAsItsLargestBatchesDo) {
  // 15 models, a deadline that lets batches of 16 form: 16 / 15.67 ms.
  const std::vector<FluidFlow> flows{{&resnet50(), 200, Duration::milliseconds(500), 15}};
  const FluidEstimate bound = fluid_estimate(flows, 1);
  EXPECT_NEAR(bound.rate, 16 / 0.01567, 1);
  EXPECT_NEAR(bound.attainment, 16 / 0.01567 / 3000, 1e-3);
  EXPECT_NEAR(bound.devices_needed, 3000 * 0.01567 / 16, 1e-3);
  EXPECT_NEAR(fluid_estimate(flows, 2).rate, 2 * bound.rate, 2);
  EXPECT_EQ(fluid_estimate(flows, 3).attainment, 1);
}

TEST(FluidEstimateTest, HopelessRequestsAreMissedWhateverIsDone) {
  const FluidEstimate bound = fluid_estimate(
      {{&resnet50(), 10, Duration::milliseconds(2)}, {&resnet50(), 30, Duration::milliseconds(100)}}, 10);
  EXPECT_DOUBLE_EQ(bound.attainment, 0.75);
  EXPECT_EQ(fluid_estimate({}, 1).attainment, 1);
}

TEST(FluidEstimateTest, FlowsOfAWorkloadAreItsOpenLoops) {
  Workload workload{.groups = {{.name = "a", .profile = "resnet50", .count = 10, .slo = Duration::milliseconds(100)},
                               {.name = "b", .profile = "resnet18"}},
                    .streams = {{.name = "s", .models = {"a"}, .arrivals = {.rate = 100}},
                                {.name = "t", .models = {"b"}, .concurrency = 4}}};
  const auto flows = fluid_flows(workload, ProfileTable::v100());
  ASSERT_EQ(flows.size(), 1u);
  EXPECT_DOUBLE_EQ(flows[0].rate, 10);
  EXPECT_EQ(flows[0].models, 10u);
  EXPECT_EQ(flows[0].slo, Duration::milliseconds(100));
}

}  // namespace
}  // namespace foliot
