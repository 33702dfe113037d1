#include "answer/personal/weights/drift_detector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <span>
#include <vector>

#include "answer/personal/weights/user_weights.h"
#include "foundation/base/check.h"
#include "foundation/base/random.h"

namespace foliot {
namespace {

// Squared errors of users with random numbers of observations: more are known better.
double drawn_loss(Random& random, size_t observations, double scale) {
  const double error = random.normal();
  return scale * error * error * (1 + 3.0 / (1 + static_cast<double>(observations)));
}

TEST(DriftDetectorTest, NoAlarmInAMillionWithoutDrift) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    DriftDetector detector;
    Random random(seed);
    for (int i = 0; i < 1'000'000; ++i) {
      const size_t observations = random.below(100);
      detector.record(observations, drawn_loss(random, observations, 1));
    }
    EXPECT_FALSE(detector.is_found()) << seed;
    EXPECT_GT(detector.tested(), 950'000u);
    EXPECT_LT(detector.evidence(), 1e4);
  }
}

// Users that come make the mean loss grow.
TEST(DriftDetectorTest, NewUsersAreNoDrift) {
  DriftDetector detector;
  Random random(1);
  for (int i = 0; i < 100'000; ++i) {
    const size_t observations = random.below(i < 50'000 ? 100 : 3);
    detector.record(observations, drawn_loss(random, observations, 1));
  }
  EXPECT_FALSE(detector.is_found());
}

TEST(DriftDetectorTest, FindsDriftWithinFiveThousand) {
  for (const double scale : {1.35, 1.5, 2.0, 4.0}) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      DriftDetector detector;
      Random random(seed);
      for (int i = 0; i < 100'000; ++i) {
        const size_t observations = random.below(100);
        detector.record(observations, drawn_loss(random, observations, 1));
      }
      const uint64_t before = detector.tested();
      for (int i = 0; i < 5000; ++i) {
        const size_t observations = random.below(100);
        detector.record(observations, drawn_loss(random, observations, scale));
      }
      EXPECT_TRUE(detector.is_found()) << scale;
      if (scale >= 1.5) {
        EXPECT_LT(detector.tested() - before, 2500u) << scale;
      }
    }
  }
}

// Users with weights of their own, which are learned by a ridge as the server does, and observe in turns. After
// `turns` the tastes of a share of them turn to the opposite. Returns whether drift was found, and after how many
// observations of a user.
struct Outcome {
  bool is_found = false;
  size_t after = 0;
};
Outcome observe(uint64_t seed, size_t users, size_t turns, double share, size_t turns_after) {
  constexpr size_t kTastes = 8;
  Random random(seed);
  DriftDetector detector;
  std::vector<std::vector<double>> hidden(users, std::vector<double>(kTastes));
  std::vector<UserWeights> learned(users, UserWeights(kTastes, 1));
  for (auto& weights : hidden) {
    for (double& weight : weights) weight = random.normal();
  }
  const std::vector<float> prior(kTastes);
  std::vector<float> weights(kTastes);
  std::vector<float> row(kTastes);
  for (size_t turn = 0; turn < turns + turns_after; ++turn) {
    for (size_t user = 0; user < users; ++user) {
      const bool is_opposite = turn >= turns && static_cast<double>(user) < share * static_cast<double>(users);
      double value = 0.5 * random.normal();
      for (size_t j = 0; j < kTastes; ++j) {
        row[j] = static_cast<float>(random.normal() / std::sqrt(8.0));
        value += (is_opposite ? -1 : 1) * hidden[user][j] * row[j];
      }
      learned[user].solve(prior, weights);
      double error = value;
      for (size_t j = 0; j < kTastes; ++j) error -= static_cast<double>(weights[j]) * row[j];
      detector.record(turn, error * error);
      const auto observed = static_cast<float>(value);
      FOLIOT_CHECK(learned[user].add(row, std::span(&observed, 1)));
    }
    if (detector.is_found()) return {.is_found = true, .after = turn + 1 - turns};
  }
  return {};
}

// FOLIOT_PERSONAL_SEEDS is the number of seeds of each.
TEST(DriftDetectorTest, PopulationsOfAnySizeAreFoundToDrift) {
  const char* const named = std::getenv("FOLIOT_PERSONAL_SEEDS");  // NOLINT(concurrency-mt-unsafe): nothing sets it
  const uint64_t seeds = named == nullptr ? 3 : std::strtoull(named, nullptr, 10);
  for (const size_t users : {80, 500, 5000}) {
    for (const double share : {1.0, 0.5, 0.25}) {
      uint64_t found = 0;
      for (uint64_t seed = 1; seed <= seeds; ++seed) {
        const Outcome outcome = observe(seed, users, 50, share, 50);
        found += outcome.is_found ? 1 : 0;
      }
      EXPECT_GE(found, seeds - seeds / 10) << users << " users, " << share;
    }
    uint64_t alarms = 0;
    for (uint64_t seed = 1; seed <= seeds; ++seed) alarms += observe(seed, users, 100, 0, 0).is_found ? 1 : 0;
    EXPECT_LE(alarms, seeds / 20) << users << " users";
  }
}

TEST(DriftDetectorTest, WithHardlyAnyLossesItSaysThatItCannotBeFound) {
  DriftDetector detector;
  Random random(1);
  for (int i = 0; i < 399; ++i) detector.record(3, drawn_loss(random, 3, 1));
  EXPECT_FALSE(detector.is_calibrated());
  detector.record(3, drawn_loss(random, 3, 1));
  EXPECT_TRUE(detector.is_calibrated());
}

// One loss of any size is no drift.
TEST(DriftDetectorTest, SingleErrorsAreNoDrift) {
  DriftDetector detector;
  Random random(1);
  for (int i = 0; i < 20'000; ++i) detector.record(5, drawn_loss(random, 5, 1));
  for (int i = 0; i < 3; ++i) detector.record(5, 1e12);
  EXPECT_FALSE(detector.is_found());
}

}  // namespace
}  // namespace foliot
