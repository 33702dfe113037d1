#include "personal/drift_detector.h"

#include <gtest/gtest.h>

#include "base/random.h"

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
