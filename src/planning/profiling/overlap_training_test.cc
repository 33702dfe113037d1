#include "planning/profiling/overlap_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "planning/profiling/group_sampling.h"

namespace foliot {
namespace {

constexpr uint32_t kOperators = 20;

// On one of two lanes twice as long as on both; `first` ms for the whole in the first bucket.
ProfiledModel linear(const char* name, double first) {
  ProfiledModel model{.name = name, .content = name, .operators = kOperators};
  for (const double whole : {first, 3 * first}) {
    std::vector<float> all, one;
    for (uint32_t i = 1; i <= kOperators; ++i) {
      all.push_back(static_cast<float>(whole * 1e6 * i / kOperators));
      one.push_back(2 * all.back());
    }
    model.ends.push_back({all, one});
  }
  return model;
}

const std::vector<ProfiledModel> kModels{linear("a", 4), linear("b", 5), linear("c", 3)};

// What runs beside something takes longer by a third of what that takes of the same time.
OverlapSample measure(const std::vector<OverlapPredictor::Part>& parts) {
  const Duration longest = OverlapPredictor::longest(kModels, 2, parts);
  Duration sum;
  for (const OverlapPredictor::Part& part : parts) sum += kModels[part.model].alone(part.bucket, 1, part.range);
  return {parts, longest + (sum - longest).scaled(1.0 / 3)};
}

std::vector<OverlapSample> draw(uint32_t count, Random& random) {
  std::vector<OverlapSample> samples;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t left_out = i % 3;
    const std::vector<OperatorRange> ranges = draw_ranges(std::array{kOperators, kOperators}, random);
    std::vector<OverlapPredictor::Part> parts;
    for (uint32_t model = 0; model < 3; ++model) {
      if (model == left_out) continue;
      parts.push_back({model, static_cast<uint32_t>(random.below(2)), ranges[parts.size()]});
    }
    samples.push_back(measure(parts));
  }
  return samples;
}

TEST(OverlapTrainingTest, LearnsWhatOneTakesOfAnother) {
  Random random(3);
  const std::vector<OverlapSample> samples = draw(1500, random);
  const LearnedOverlap learned = learn_overlap(kModels, 2, samples, {}, random);
  EXPECT_LT(learned.errors.correction, 0.02);
  EXPECT_GT(learned.errors.untrained, 0.05) << "there was something to learn";
  EXPECT_GT(learned.errors.abacus, 0);
  EXPECT_LT(learned.errors.abacus, 0.25);
  EXPECT_NEAR(static_cast<double>(learned.held_out.size()), 300, 60);
  double worst = 0;
  for (const OverlapSample& sample : draw(200, random)) {
    const double predicted = learned.predictor.predict(sample.parts).to_seconds();
    worst = std::max(worst, std::abs(predicted / sample.together.to_seconds() - 1));
  }
  EXPECT_LT(worst, 0.2) << "of samples that it has not seen";
}

TEST(OverlapTrainingTest, WhatIsNoisyOrWrongIsNotUsed) {
  const auto said = [](double spread, double error) {
    return check_quality(spread, {.correction = error}, 0.2).message();
  };
  EXPECT_EQ(said(0.2, 0.2), "");
  EXPECT_NE(said(0.36, 0.1).find("repeats of a group differ by 36.0 %, more than 20.0 %: the machine is noisy"),
            std::string::npos);
  EXPECT_NE(said(0.1, 0.36).find("the error on held-out groups is 36.0 %, more than 20.0 %"), std::string::npos);
  EXPECT_NE(said(0, std::nan("")), "");
}

TEST(OverlapTrainingTest, GainsAreAgainstAllLanesInTurn) {
  const OverlapSample whole = measure({{0, 0, {}}, {1, 0, {}}});
  // 9 ms in turn; 10 ms and a third of 8 beside each other.
  EXPECT_NEAR(gain_of(kModels, whole), 9 / (10 + 8.0 / 3), 1e-6);
}

}  // namespace
}  // namespace foliot
