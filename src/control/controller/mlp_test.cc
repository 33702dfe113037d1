#include "control/controller/mlp.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace foliot {
namespace {

std::vector<MlpSample> samples_of_maximum(uint32_t count, Random& random) {
  std::vector<MlpSample> samples;
  for (uint32_t i = 0; i < count; ++i) {
    const auto a = static_cast<float>(random.uniform());
    const auto b = static_cast<float>(random.uniform());
    samples.push_back({{a, b}, 0.2F + std::max(a, b)});
  }
  return samples;
}

TEST(MlpTest, LearnsWhatIsNotLinear) {
  Random random(3);
  const std::vector<MlpSample> samples = samples_of_maximum(2000, random);
  const std::vector<MlpSample> held_out = samples_of_maximum(500, random);
  Mlp mlp(2, random);
  EXPECT_GT(mlp.error(held_out), 0.1);
  mlp.train(samples, {.epochs = 30}, random);
  EXPECT_LT(mlp.error(held_out), 0.02);
}

TEST(MlpTest, TheSameSeedGivesTheSameWeights) {
  const auto trained = [] {
    Random random(5);
    const std::vector<MlpSample> samples = samples_of_maximum(100, random);
    Mlp mlp(2, random);
    mlp.train(samples, {.epochs = 2}, random);
    return mlp.predict(samples[0].inputs);
  };
  EXPECT_EQ(trained(), trained());
}

}  // namespace
}  // namespace foliot
