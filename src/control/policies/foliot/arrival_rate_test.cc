#include "control/policies/foliot/arrival_rate.h"

#include <gtest/gtest.h>

namespace foliot::foliot_policy {
namespace {

TimePoint at_seconds(double seconds) { return TimePoint() + Duration::from_seconds(seconds); }

// From `begin` to `end`, evenly spaced.
void arrive(ArrivalRate& rate, double per_second, double begin, double end) {
  for (double t = begin; t < end; t += 1 / per_second) rate.record(at_seconds(t));
}

TEST(ArrivalRateTest, NothingSeenIsNoRate) {
  const ArrivalRate rate;
  EXPECT_FALSE(rate.seen());
  EXPECT_EQ(rate.at(at_seconds(5)), 0);
}

TEST(ArrivalRateTest, FindsASteadyRate) {
  for (const double per_second : {0.2, 5.0, 500.0}) {
    ArrivalRate rate;
    arrive(rate, per_second, 0, 600);
    EXPECT_NEAR(rate.at(at_seconds(600)), per_second, per_second * 0.3) << per_second;
  }
}

TEST(ArrivalRateTest, FollowsAChangeWithinSeconds) {
  ArrivalRate rate;
  arrive(rate, 1, 0, 300);
  arrive(rate, 50, 300, 306);
  EXPECT_GT(rate.at(at_seconds(306)), 30);
}

TEST(ArrivalRateTest, FallsWhenRequestsStop) {
  ArrivalRate rate;
  arrive(rate, 10, 0, 60);
  EXPECT_LT(rate.at(at_seconds(120)), 2);
  EXPECT_LT(rate.at(at_seconds(600)), 0.1);
}

TEST(ArrivalRateTest, FallsWithinAFewMeanGapsOfSilence) {
  ArrivalRate rate;
  arrive(rate, 10, 0, 60);
  EXPECT_GT(rate.at(at_seconds(60.3)), 5);
  EXPECT_LT(rate.at(at_seconds(61.5)), 4.5);  // no more than of the longest counter is left
}

// A model that is idle for half of the time has its rate again when it is asked again.
TEST(ArrivalRateTest, RemembersTheRateOfBeforeASilence) {
  ArrivalRate rate;
  for (double begin = 0; begin < 40; begin += 10) arrive(rate, 10, begin, begin + 5);
  rate.record(at_seconds(40));
  EXPECT_GT(rate.at(at_seconds(40)), 6);
}

// Whatever has come, and whether or not at_seconds() was asked for lately.
TEST(ArrivalRateTest, IsNeverLessThanItsLowerBound) {
  ArrivalRate rate;
  EXPECT_EQ(rate.at_least(at_seconds(1)), 0);
  arrive(rate, 0.1, 0, 300);
  arrive(rate, 50, 300, 305);
  arrive(rate, 2, 305, 320);
  for (double t = 320; t < 400; t += 0.013) {
    const double least = rate.at_least(at_seconds(t));
    ArrivalRate asked_now = rate;
    ASSERT_LE(least, asked_now.at(at_seconds(t))) << t;
    if (static_cast<int>(t) % 3 == 0) rate.at(at_seconds(t));
  }
}

TEST(ArrivalRateTest, TheLowerBoundIsNearAfterALook) {
  ArrivalRate rate;
  arrive(rate, 0.2, 0, 600);
  const double exact = rate.at(at_seconds(604));
  EXPECT_GT(rate.at_least(at_seconds(604.1)), exact * 0.8);
  arrive(rate, 100, 604, 610);
  EXPECT_GT(rate.at_least(at_seconds(610)), 0);
}

}  // namespace
}  // namespace foliot::foliot_policy
