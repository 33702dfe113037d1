#include "answer/versions/canary_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>

namespace foliot {
namespace {

using End = VersionOutcome::End;

constexpr int kRuns = 40;
constexpr uint64_t kCanaries = 2'000;

// What differs between the two versions.
struct Versions {
  double errors = 0;  // of the canary
  double stable_errors = 0;
  double misses = 0;   // of both
  double slower = 1;   // so many times as long, at the canary
  double tail = 1;     // likewise, the slowest 2 % only
  bool heavy = false;  // latencies of a Pareto distribution, not of a log-normal one
  double loss = -1;    // of the canary; below 0: no feedback
  double stable_loss = 0.2;
};

class Runs {
 public:
  explicit Runs(uint64_t seed) : random_(seed) {}

  // After how many requests of the canary it is taken out; nullopt: not within kCanaries.
  std::optional<uint64_t> run(const Versions& versions, uint32_t percent) {
    CanaryTrial trial(percent / 100.0);
    uint64_t canaries = 0;
    for (uint64_t i = 0; canaries < kCanaries; ++i) {
      const bool is_canary = i * 61 % 100 < percent;
      canaries += is_canary ? 1 : 0;
      trial.add(is_canary, outcome(versions, is_canary));
      if (versions.loss >= 0) {
        const double mean = is_canary ? versions.loss : versions.stable_loss;
        trial.add_loss(is_canary, uniform() * 2 * mean);
      }
      if (!trial.verdict().empty()) return canaries;
    }
    return std::nullopt;
  }

 private:
  double uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  VersionOutcome outcome(const Versions& versions, bool is_canary) {
    if (uniform() < versions.misses) return {.end = End::kMissed};
    if (uniform() < (is_canary ? versions.errors : versions.stable_errors)) return {.end = End::kFailed};
    const double position = uniform();
    double milliseconds =
        versions.heavy ? std::pow(1 - position, -0.5) : std::exp(0.5 * std::normal_distribution<double>()(random_));
    if (is_canary) milliseconds *= versions.slower;
    if (is_canary && uniform() < 0.02) milliseconds *= versions.tail;
    return {.end = End::kServed, .latency = Duration::nanoseconds(static_cast<int64_t>(milliseconds * 1e6))};
  }

  std::mt19937_64 random_;
};

int taken_out(const Versions& versions, uint32_t percent = 5) {
  int count = 0;
  for (int seed = 0; seed < kRuns; ++seed) count += Runs(seed).run(versions, percent).has_value() ? 1 : 0;
  return count;
}

TEST(CanaryTrialTest, OneThatFailsOrIsSlowIsAlwaysOutWithin2000OfItsRequests) {
  EXPECT_EQ(taken_out({.errors = 0.02}), kRuns);
  EXPECT_EQ(taken_out({.errors = 0.02, .stable_errors = 0.002}), kRuns);
  EXPECT_EQ(taken_out({.slower = 2}), kRuns);
  EXPECT_EQ(taken_out({.slower = 2, .heavy = true}), kRuns);
  EXPECT_EQ(taken_out({.tail = 8}), kRuns);
  EXPECT_EQ(taken_out({.errors = 0.02}, 50), kRuns);
  EXPECT_EQ(taken_out({.slower = 2}, 50), kRuns);
  EXPECT_EQ(taken_out({.loss = 0.3}), kRuns);
}

TEST(CanaryTrialTest, AnEqualOneIsOutInAtMostOneOf20Runs) {
  for (const uint32_t percent : {5U, 50U}) {
    EXPECT_LE(taken_out({}, percent), kRuns / 20);
    EXPECT_LE(taken_out({.errors = 0.02, .stable_errors = 0.02, .misses = 0.1}, percent), kRuns / 20);
    EXPECT_LE(taken_out({.heavy = true, .loss = 0.2}, percent), kRuns / 20);
  }
}

TEST(CanaryTrialTest, ABetterOneStays) {
  EXPECT_LE(taken_out({.stable_errors = 0.02, .slower = 0.5, .loss = 0.1}), kRuns / 20);
}

TEST(CanaryTrialTest, AVerdictNamesBothVersions) {
  CanaryTrial trial(0.5);
  for (int i = 0; i < 40; ++i) trial.add(i % 2 == 0, {.end = i % 2 == 0 ? End::kFailed : End::kServed});
  EXPECT_THAT(trial.verdict(), testing::StartsWith("errors: 20 of 20 (100.00 %), and 0 of 20 (0.00 %) of the stable"));
}

// Whose key falls on the canary.
TEST(CanaryTrialTest, WhatOneClientHasOfFailuresCountsOnce) {
  CanaryTrial trial(0.05);
  for (int i = 0; i < 300; ++i) trial.add(i % 20 == 0, {.end = End::kServed});
  for (int i = 0; i < 50; ++i) trial.add(true, {.end = i % 2 == 0 ? End::kFailed : End::kMissed, .client = 7});
  EXPECT_EQ(trial.verdict(), "");
  for (uint64_t client = 8; client < 14; ++client) trial.add(true, {.end = End::kFailed, .client = client});
  EXPECT_THAT(trial.verdict(), testing::StartsWith("errors: "));
}

TEST(CanaryTrialTest, WhatSaysNothingOfAVersionDoesNotCount) {
  CanaryTrial trial(0.05);
  for (int i = 0; i < 1000; ++i) trial.add(true, {.end = End::kOther});
  EXPECT_EQ(trial.tests()[0].canary().requests, 0u);
}

}  // namespace
}  // namespace foliot
