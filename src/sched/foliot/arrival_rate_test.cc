#include "sched/foliot/arrival_rate.h"

#include <gtest/gtest.h>

namespace foliot::foliot_policy {
namespace {

TimePoint at(double seconds) { return TimePoint() + Duration::from_seconds(seconds); }

// From `begin` to `end`, evenly spaced.
void arrive(ArrivalRate& rate, double per_second, double begin, double end) {
  for (double t = begin; t < end; t += 1 / per_second) rate.record(at(t));
}

TEST(ArrivalRateTest, NothingSeenIsNoRate) {
  const ArrivalRate rate;
  EXPECT_FALSE(rate.seen());
  EXPECT_EQ(rate.at(at(5)), 0);
}

TEST(ArrivalRateTest, FindsASteadyRate) {
  for (const double per_second : {0.2, 5.0, 500.0}) {
    ArrivalRate rate;
    arrive(rate, per_second, 0, 600);
    EXPECT_NEAR(rate.at(at(600)), per_second, per_second * 0.3) << per_second;
  }
}

TEST(ArrivalRateTest, FollowsAChangeWithinSeconds) {
  ArrivalRate rate;
  arrive(rate, 1, 0, 300);
  arrive(rate, 50, 300, 306);
  EXPECT_GT(rate.at(at(306)), 30);
}

TEST(ArrivalRateTest, FallsSilentWhenNobodyAsksAnyMore) {
  ArrivalRate rate;
  arrive(rate, 10, 0, 60);
  EXPECT_LT(rate.at(at(120)), 2);
  EXPECT_LT(rate.at(at(600)), 0.1);
}

}  // namespace
}  // namespace foliot::foliot_policy
