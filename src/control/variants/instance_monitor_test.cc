#include "control/variants/instance_monitor.h"

#include <gtest/gtest.h>

#include "control/variants/test_variants.h"

namespace foliot {
namespace {

// Of 10 ms and 100 queries per second.
class InstanceMonitorTest : public testing::Test {
 protected:
  // For a second, `rate` queries, each of which takes `ms`.
  void run(int64_t rate, int64_t ms) {
    for (int64_t i = 0; i < rate; ++i) {
      now_ += Duration::nanoseconds(1'000'000'000 / rate);
      monitor_.on_outcome(1, Duration::milliseconds(ms), now_);
    }
  }
  Variant variant_ = test_variant("a", 0.7, 10, 100, 1);
  TimePoint now_ = TimePoint::from_nanoseconds(5'000'000'000);
  InstanceMonitor monitor_{variant_, now_};
};

TEST_F(InstanceMonitorTest, IsActiveBelowItsSaturationRateAndOverloadedAtIt) {
  EXPECT_EQ(monitor_.state(now_), InstanceState::kActive);
  run(50, 10);
  run(50, 10);
  EXPECT_NEAR(monitor_.rate(now_), 50, 7);
  EXPECT_EQ(monitor_.state(now_), InstanceState::kActive);
  for (int i = 0; i < 3; ++i) run(100, 10);
  EXPECT_EQ(monitor_.state(now_), InstanceState::kOverloaded);
  for (int i = 0; i < 3; ++i) run(90, 10);
  EXPECT_EQ(monitor_.state(now_), InstanceState::kOverloaded) << "no flapping";
  for (int i = 0; i < 3; ++i) run(70, 10);
  EXPECT_EQ(monitor_.state(now_), InstanceState::kActive);
}

TEST_F(InstanceMonitorTest, IsInterferedWhereItIsSlowerThanProfiledAndNotOverloaded) {
  for (int i = 0; i < 3; ++i) run(40, 13);
  EXPECT_EQ(monitor_.state(now_), InstanceState::kInterfered);
  for (int i = 0; i < 3; ++i) run(100, 13);
  EXPECT_EQ(monitor_.state(now_), InstanceState::kOverloaded);
  for (int i = 0; i < 3; ++i) run(40, 10);
  EXPECT_EQ(monitor_.state(now_), InstanceState::kActive);
}

TEST_F(InstanceMonitorTest, AnInstanceOfSeveralSharesTakesMore) {
  monitor_.set_saturation(200);
  for (int i = 0; i < 3; ++i) run(100, 10);
  EXPECT_EQ(monitor_.state(now_), InstanceState::kActive);
  for (int i = 0; i < 3; ++i) run(200, 10);
  EXPECT_EQ(monitor_.state(now_), InstanceState::kOverloaded);
}

TEST_F(InstanceMonitorTest, ForgetsWhatIsOlderThanItsWindow) {
  for (int i = 0; i < 3; ++i) run(40, 13);
  EXPECT_EQ(monitor_.state(now_ + Duration::seconds(3)), InstanceState::kActive);
  EXPECT_EQ(monitor_.rate(now_ + Duration::seconds(3)), 0);
}

}  // namespace
}  // namespace foliot
