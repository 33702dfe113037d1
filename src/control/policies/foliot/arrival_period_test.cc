#include "control/policies/foliot/arrival_period.h"

#include <gtest/gtest.h>

#include <cmath>

#include "foundation/base/random.h"

namespace foliot::foliot_policy {
namespace {

TimePoint instant(double seconds) { return TimePoint() + Duration::from_seconds(seconds); }
double seconds(TimePoint when) { return (when - TimePoint()).to_seconds(); }

TEST(ArrivalPeriodTest, PredictsNothingOfWhatItHasNotSeen) {
  ArrivalPeriod period;
  EXPECT_FALSE(period.next(instant(1)));
  period.record(instant(1));
  EXPECT_FALSE(period.next(instant(1)));
  period.record(instant(2));
  EXPECT_FALSE(period.next(instant(2)));  // any two arrivals have a gap
}

TEST(ArrivalPeriodTest, PredictsATimerFromItsThirdRequestOn) {
  for (const double gap : {0.02, 1.0, 10.0, 3600.0}) {
    ArrivalPeriod period;
    for (int i = 0; i < 3; ++i) period.record(instant(5 + i * gap));
    const auto next = period.next(instant(5 + 2.5 * gap));
    ASSERT_TRUE(next) << gap;
    EXPECT_NEAR(seconds(next->at), 5 + 3 * gap, gap * 1e-6);
  }
}

// Late by up to a tenth of the period, each time anew.
TEST(ArrivalPeriodTest, PredictsArrivalsWithJitter) {
  Random random(1);
  ArrivalPeriod period;
  double worst = 0;
  for (int i = 0; i < 200; ++i) {
    const double arrival = i * 2.0 + random.uniform() * 0.2;
    if (i > 20) {
      const auto next = period.next(instant(i * 2.0 - 0.5));
      ASSERT_TRUE(next) << i;
      worst = std::max(worst, std::abs(seconds(next->at) - arrival));
    }
    period.record(instant(arrival));
  }
  EXPECT_LT(worst, 0.2);
}

// Each gap is 2 s and an error of its own: the phase wanders.
TEST(ArrivalPeriodTest, FollowsAPhaseThatWanders) {
  Random random(2);
  ArrivalPeriod period;
  double now = 0;
  int predicted = 0;
  for (int i = 0; i < 200; ++i) {
    now += 1.95 + random.uniform() * 0.1;
    const auto next = period.next(instant(now - 0.5));
    if (next && std::abs(seconds(next->at) - now) < 0.15) ++predicted;
    period.record(instant(now));
  }
  EXPECT_GT(predicted, 180);
}

TEST(ArrivalPeriodTest, ATickWithoutARequestIsSkipped) {
  ArrivalPeriod period;
  for (int i = 0; i < 6; ++i) period.record(instant(i));
  EXPECT_NEAR(seconds(period.next(instant(6.5))->at), 7, 1e-6);
  period.record(instant(7));
  EXPECT_NEAR(seconds(period.next(instant(7.5))->at), 8, 1e-6);
}

TEST(ArrivalPeriodTest, WhatIsALittleLateIsStillExpected) {
  ArrivalPeriod period;
  for (int i = 0; i < 6; ++i) period.record(instant(i));
  EXPECT_NEAR(seconds(period.next(instant(6.005))->at), 6, 1e-6);
}

TEST(ArrivalPeriodTest, ForgetsATimerThatHasStopped) {
  ArrivalPeriod period;
  for (int i = 0; i < 20; ++i) period.record(instant(i));
  EXPECT_TRUE(period.next(instant(21.5)));
  EXPECT_FALSE(period.next(instant(24)));
}

TEST(ArrivalPeriodTest, FindsTheNewPeriodAfterAChange) {
  ArrivalPeriod period;
  for (int i = 0; i < 50; ++i) period.record(instant(i * 1.0));
  double now = 49;
  for (int i = 0; i < 6; ++i) period.record(instant(now += 3.7));
  const auto next = period.next(instant(now + 1));
  ASSERT_TRUE(next);
  EXPECT_NEAR(seconds(next->at), now + 3.7, 0.05);
}

TEST(ArrivalPeriodTest, SeveralRequestsMayComeAtOneTick) {
  ArrivalPeriod period;
  for (int i = 0; i < 8; ++i) {
    period.record(instant(i * 10));
    period.record(instant(i * 10));
    period.record(instant(i * 10 + 0.02));
  }
  const auto next = period.next(instant(75));
  ASSERT_TRUE(next);
  EXPECT_NEAR(seconds(next->at), 80, 0.1);
}

TEST(ArrivalPeriodTest, SeesNoPeriodInRandomArrivals) {
  Random random(3);
  int predicted = 0;
  ArrivalPeriod period;
  double now = 0;
  for (int i = 0; i < 10'000; ++i) {
    now += random.exponential();
    period.record(instant(now));
    predicted += period.next(instant(now)) ? 1 : 0;
  }
  EXPECT_LT(predicted, 100);
}

TEST(ArrivalPeriodTest, ARequestThatIsTriedAgainChangesNothing) {
  ArrivalPeriod period;
  for (int i = 0; i < 6; ++i) period.record(instant(i));
  period.record(instant(3.4));
  EXPECT_NEAR(seconds(period.next(instant(5.5))->at), 6, 1e-6);
}

}  // namespace
}  // namespace foliot::foliot_policy
