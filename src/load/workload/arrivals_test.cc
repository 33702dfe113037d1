#include "load/workload/arrivals.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foliot {
namespace {

std::unique_ptr<ArrivalProcess> make(const ArrivalOptions& options) {
  Result<std::unique_ptr<ArrivalProcess>> process = make_arrivals(options);
  EXPECT_TRUE(process.ok()) << process.status().message();
  return std::move(process).value();
}

std::vector<double> gaps(const ArrivalOptions& options, size_t count, uint64_t seed = 1) {
  const std::unique_ptr<ArrivalProcess> process = make(options);
  Random random(seed);
  std::vector<double> result;
  while (result.size() < count) {
    const std::optional<Duration> gap = process->next_gap(random);
    if (!gap) break;
    EXPECT_GE(*gap, Duration());
    result.push_back(gap->to_seconds());
  }
  return result;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double variation(const std::vector<double>& values) {
  const double center = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - center) * (value - center);
  return std::sqrt(sum / static_cast<double>(values.size())) / center;
}

// Arrivals within [from, to) seconds, averaged over seeds.
double arrivals_between(const ArrivalOptions& options, double from, double to) {
  constexpr uint64_t kSeeds = 20;
  double count = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    double at = 0;
    for (const double gap : gaps(options, 20'000, seed)) {
      at += gap;
      if (at >= from && at < to) ++count;
    }
  }
  return count / static_cast<double>(kSeeds);
}

TEST(ArrivalsTest, PoissonHasItsRateAndVariationOne) {
  const auto values = gaps({.kind = ArrivalKind::kPoisson, .rate = 250}, 200'000);
  EXPECT_NEAR(mean(values), 1.0 / 250, 0.01 / 250);
  EXPECT_NEAR(variation(values), 1, 0.01);
}

TEST(ArrivalsTest, GammaHasItsRateAndVariation) {
  for (const double wanted : {0.5, 2.0, 4.0, 8.0}) {
    ArrivalOptions options{.kind = ArrivalKind::kGamma, .rate = 250};
    options.coefficient_of_variation = wanted;
    const auto values = gaps(options, 1'000'000);
    EXPECT_NEAR(mean(values) * 250, 1, 0.03) << wanted;
    EXPECT_NEAR(variation(values) / wanted, 1, 0.03) << wanted;
  }
}

TEST(ArrivalsTest, UniformIsEvenlySpaced) {
  for (const double gap : gaps({.kind = ArrivalKind::kUniform, .rate = 1000}, 100)) EXPECT_DOUBLE_EQ(gap, 0.001);
}

TEST(ArrivalsTest, OnOffKeepsTheMeanRateAndIsBursty) {
  ArrivalOptions options{.kind = ArrivalKind::kOnOff, .rate = 500};
  options.mean_on = Duration::milliseconds(50);
  options.mean_off = Duration::milliseconds(150);
  const auto values = gaps(options, 1'000'000);
  EXPECT_NEAR(mean(values) * 500, 1, 0.03);
  EXPECT_GT(variation(values), 3);
}

TEST(ArrivalsTest, OnOffWithoutSilenceIsPoisson) {
  ArrivalOptions options{.kind = ArrivalKind::kOnOff, .rate = 500};
  options.mean_off = Duration();
  const auto values = gaps(options, 200'000);
  EXPECT_NEAR(mean(values) * 500, 1, 0.01);
  EXPECT_NEAR(variation(values), 1, 0.01);
}

TEST(ArrivalsTest, SpikeRisesStaysAndFalls) {
  ArrivalOptions options{.kind = ArrivalKind::kSpike, .rate = 400};
  options.spike_start = Duration::seconds(2);
  options.spike_rise = Duration::seconds(1);
  options.spike_length = Duration::seconds(2);
  EXPECT_NEAR(arrivals_between(options, 0, 2), 800, 30);
  EXPECT_NEAR(arrivals_between(options, 2, 3), 800, 30);
  EXPECT_NEAR(arrivals_between(options, 3, 5), 2400, 50);
  EXPECT_NEAR(arrivals_between(options, 5, 6), 800, 30);
  EXPECT_NEAR(arrivals_between(options, 6, 10), 1600, 40);
}

TEST(ArrivalsTest, RampGrowsAndStays) {
  ArrivalOptions options{.kind = ArrivalKind::kRamp, .rate = 0};
  options.ramp_rate = 1000;
  options.ramp_length = Duration::seconds(4);
  EXPECT_NEAR(arrivals_between(options, 0, 2), 500, 25);
  EXPECT_NEAR(arrivals_between(options, 2, 4), 1500, 40);
  EXPECT_NEAR(arrivals_between(options, 4, 6), 2000, 45);
}

TEST(ArrivalsTest, RampToZeroEnds) {
  ArrivalOptions options{.kind = ArrivalKind::kRamp, .rate = 1000};
  options.ramp_rate = 0;
  options.ramp_length = Duration::seconds(2);
  const std::unique_ptr<ArrivalProcess> process = make(options);
  Random random(3);
  double at = 0;
  int count = 0;
  while (const std::optional<Duration> gap = process->next_gap(random)) {
    at += gap->to_seconds();
    ++count;
  }
  EXPECT_LE(at, 2);
  EXPECT_NEAR(count, 1000, 100);
  EXPECT_EQ(process->next_gap(random), std::nullopt);
}

TEST(ArrivalsTest, ReplayGivesTheInstantsBack) {
  ArrivalOptions options{.kind = ArrivalKind::kReplay};
  options.instants = {Duration::milliseconds(5), Duration::milliseconds(5), Duration::milliseconds(12)};
  const std::unique_ptr<ArrivalProcess> process = make(options);
  Random random(1);
  EXPECT_EQ(process->next_gap(random), Duration::milliseconds(5));
  EXPECT_EQ(process->next_gap(random), Duration());
  EXPECT_EQ(process->next_gap(random), Duration::milliseconds(7));
  EXPECT_EQ(process->next_gap(random), std::nullopt);
  EXPECT_EQ(process->next_gap(random), std::nullopt);
}

TEST(ArrivalsTest, SeedDecidesEverything) {
  for (const ArrivalKind kind :
       {ArrivalKind::kPoisson, ArrivalKind::kGamma, ArrivalKind::kOnOff, ArrivalKind::kSpike, ArrivalKind::kRamp}) {
    const ArrivalOptions options{.kind = kind};
    EXPECT_EQ(gaps(options, 1000, 7), gaps(options, 1000, 7)) << to_string(kind);
    EXPECT_NE(gaps(options, 1000, 7), gaps(options, 1000, 8)) << to_string(kind);
  }
}

TEST(ArrivalsTest, NamesRoundTrip) {
  for (const std::string_view name : {"poisson", "gamma", "uniform", "on-off", "spike", "ramp", "replay"}) {
    const std::optional<ArrivalKind> kind = parse_arrival_kind(name);
    ASSERT_TRUE(kind.has_value()) << name;
    EXPECT_EQ(to_string(*kind), name);
  }
  EXPECT_EQ(parse_arrival_kind("bursty"), std::nullopt);
}

void expect_refused(const ArrivalOptions& options) {
  const auto process = make_arrivals(options);
  ASSERT_FALSE(process.ok()) << to_string(options.kind);
  EXPECT_EQ(process.status().code(), StatusCode::kInvalidArgument);
}

TEST(ArrivalsTest, ImpossibleOptionsAreErrors) {
  expect_refused({.kind = ArrivalKind::kPoisson, .rate = 0});
  expect_refused({.kind = ArrivalKind::kUniform, .rate = NAN});
  expect_refused({.kind = ArrivalKind::kGamma, .coefficient_of_variation = 0});
  expect_refused({.kind = ArrivalKind::kOnOff, .mean_on = Duration()});
  expect_refused({.kind = ArrivalKind::kSpike, .spike_rise = -Duration::seconds(1)});
  expect_refused({.kind = ArrivalKind::kRamp, .rate = 0, .ramp_rate = 0});
  expect_refused({.kind = ArrivalKind::kReplay, .instants = {Duration::seconds(2), Duration::seconds(1)}});
}

}  // namespace
}  // namespace foliot
