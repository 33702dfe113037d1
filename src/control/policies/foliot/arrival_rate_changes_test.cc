// ArrivalRate beside a truth of its own: Poisson arrivals whose rate changes at random, up and down, sparse and dense.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "control/policies/foliot/arrival_rate.h"
#include "foundation/base/random.h"
#include "foundation/base/test_seed.h"

namespace foliot::foliot_policy {
namespace {

class ArrivalRateChangesTest : public testing::Test {
 protected:
  // Arrivals at this rate for so long; from `settled` on, 100 looks at random instants at what the estimate is beside
  // the rate.
  std::vector<double> ratios(double per_second, double seconds, double settled) {
    std::vector<double> looks(100);
    for (double& look : looks) look = now_ + settled + random_.uniform() * (seconds - settled);
    std::sort(looks.begin(), looks.end());
    const double end = now_ + seconds;
    std::vector<double> ratios;
    double next = now_ + random_.exponential() / per_second;
    for (const double look : looks) {
      for (; next < look; next += random_.exponential() / per_second) rate_.record(at(next));
      ratios.push_back(rate_.at(at(look)) / per_second);
    }
    for (; next < end; next += random_.exponential() / per_second) rate_.record(at(next));
    now_ = end;
    return ratios;
  }
  double between(double least, double most) { return least * std::pow(most / least, random_.uniform()); }
  static TimePoint at(double seconds) { return TimePoint() + Duration::from_seconds(seconds); }

  Random random_{fresh_seed()};
  ArrivalRate rate_;
  double now_ = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double part_within(const std::vector<double>& ratios, double times) {
  const auto within =
      std::count_if(ratios.begin(), ratios.end(), [&](double ratio) { return ratio * times >= 1 && ratio <= times; });
  return static_cast<double>(within) / static_cast<double>(ratios.size());
}

// 60 arrivals after each change, or a minute.
TEST_F(ArrivalRateChangesTest, TheEstimateConvergesToTheRateAfterEachChange) {
  std::vector<double> after_rise;
  std::vector<double> after_fall;
  double before = between(0.05, 200);
  ratios(before, 100, 50);
  for (int change = 0; change < 300; ++change) {
    const double now = between(0.05, 200);
    const double settled = std::max(60.0, 60 / now);
    for (const double ratio : ratios(now, settled * 1.5, settled))
      (now > before ? after_rise : after_fall).push_back(ratio);
    before = now;
  }
  EXPECT_NEAR(median(after_rise), 1, 0.1);
  EXPECT_GT(part_within(after_rise, 1.5), 0.9);
  EXPECT_GT(part_within(after_rise, 3), 0.98);
  // What was asked in bursts may be asked so again: it takes longer until a fall is believed.
  EXPECT_NEAR(median(after_fall), 1, 0.15);
  EXPECT_GT(part_within(after_fall, 1.5), 0.55);
  EXPECT_GT(part_within(after_fall, 3), 0.8);
}

// What was asked ten times as often is no model that is idle between bursts: the rate is known within 20 arrivals.
TEST_F(ArrivalRateChangesTest, AFallIsFollowedWithinTwentyArrivals) {
  std::vector<double> all;
  for (int turn = 0; turn < 100; ++turn) {
    const double high = between(1, 100);
    ratios(high, 120 + 120 / high, 100);
    const double low = high / 10;
    for (const double ratio : ratios(low, 40 / low, 20 / low)) all.push_back(ratio);
  }
  EXPECT_NEAR(median(all), 1, 0.5);
  EXPECT_GT(part_within(all, 3), 0.78);
}

}  // namespace
}  // namespace foliot::foliot_policy
