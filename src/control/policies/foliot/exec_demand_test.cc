#include "control/policies/foliot/exec_demand.h"

#include <gtest/gtest.h>

#include <array>

namespace foliot::foliot_policy {
namespace {

TimePoint after(int64_t ms) { return TimePoint() + Duration::milliseconds(ms); }

TEST(ExecDemandTest, IsUnknownUntilSoManyHaveCome) {
  ExecDemand demand;
  for (uint32_t i = 0; i + 1 < ExecDemand::kCount; ++i) demand.arrived(after(i));
  EXPECT_EQ(demand.at(after(ExecDemand::kCount)), 0);
  demand.arrived(after(ExecDemand::kCount - 1));
  EXPECT_NEAR(demand.at(after(ExecDemand::kCount)), 1000, 0.1);
}

TEST(ExecDemandTest, FollowsAChangeAndFallsInSilence) {
  ExecDemand demand;
  int64_t now = 0;
  for (uint32_t i = 0; i < ExecDemand::kCount; ++i) demand.arrived(after(now += 100));
  EXPECT_NEAR(demand.at(after(now + 100)), 10, 0.01);
  for (uint32_t i = 0; i < ExecDemand::kCount; ++i) demand.arrived(after(now += 2));
  EXPECT_NEAR(demand.at(after(now + 2)), 500, 1);
  EXPECT_LT(demand.at(after(now + 3'600'000)), 0.1);
}

TEST(ExecDemandTest, ManyRowsInOneExecAreOne) {
  ExecDemand demand;
  for (uint32_t i = 0; i < ExecDemand::kCount; ++i) demand.arrived(after(i));
  for (int i = 0; i < 1000; ++i) demand.sent(4, {});
  EXPECT_NEAR(demand.at(after(ExecDemand::kCount)), 250, 0.1);
}

TEST(ExecDemandTest, AnExecTakesAsLongAsTheLastOnesDidOnAverage) {
  ExecDemand demand;
  EXPECT_EQ(demand.exec(0).now, Duration());
  const auto sent = [&](int64_t on_all, int64_t on_one) {
    const Duration all = Duration::milliseconds(on_all);
    const Duration one = Duration::milliseconds(on_one);
    const std::array<ExecDemand::Exec, 2> by_width{{{all, all / 2}, {one, one / 2}}};
    demand.sent(1, by_width);
  };
  sent(2, 6);
  sent(4, 10);
  EXPECT_EQ(demand.exec(0).now, Duration::milliseconds(3));
  EXPECT_EQ(demand.exec(1).now, Duration::milliseconds(8));
  EXPECT_EQ(demand.exec(1).grown, Duration::milliseconds(4));
  for (int i = 0; i < 1000; ++i) sent(1, 2);
  EXPECT_NEAR(demand.exec(0).now.to_milliseconds(), 1, 0.01);
  EXPECT_NEAR(demand.exec(1).now.to_milliseconds(), 2, 0.01);
  EXPECT_NEAR(demand.exec(1).grown.to_milliseconds(), 1, 0.01);
}

TEST(ExecDemandTest, ManyAtOnceAreFinite) {
  ExecDemand demand;
  for (uint32_t i = 0; i < ExecDemand::kCount; ++i) demand.arrived(after(5));
  EXPECT_LE(demand.at(after(5)), ExecDemand::kCount * 1e6 + 1);
}

}  // namespace
}  // namespace foliot::foliot_policy
