#include "answer/personal/weights/user_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "answer/personal/weights/cholesky.h"

namespace foliot {
namespace {

// Observations of a hidden vector, with noise.
struct Ratings {
  Ratings(size_t features, size_t count, uint64_t seed) : width(padded_rows(features)) {
    Random random(seed);
    std::vector<double> hidden(features);
    for (double& value : hidden) value = random.normal() / std::sqrt(static_cast<double>(features));
    for (size_t i = 0; i < count; ++i) {
      double value = 0.3 * random.normal();
      rows.resize((i + 1) * width);
      for (size_t j = 0; j < features; ++j) {
        const double feature = random.normal();
        rows[i * width + j] = static_cast<float>(feature);
        value += feature * hidden[j];
      }
      values.push_back(static_cast<float>(value));
    }
    prior.resize(width);
    for (size_t j = 0; j < features; ++j) prior[j] = static_cast<float>(0.1 * random.normal());
  }
  std::span<const float> row(size_t i, size_t count = 1) const {
    return std::span(rows).subspan(i * width, count * width);
  }
  std::span<const float> value(size_t i, size_t count = 1) const { return std::span(values).subspan(i, count); }

  size_t width;
  std::vector<float> rows;
  std::vector<float> values;
  std::vector<float> prior;
};

constexpr float kLambda = 0.5F;

class UserWeightsTest : public testing::TestWithParam<size_t> {};

TEST_P(UserWeightsTest, UpdatesGiveWhatAFreshSolveGives) {
  const size_t features = GetParam();
  const Ratings ratings(features, 1000, features);
  UserWeights weights(features, kLambda);
  for (size_t i = 0; i < 1000; ++i) ASSERT_TRUE(weights.add(ratings.row(i), ratings.value(i)));
  EXPECT_TRUE(weights.is_due());
  std::vector<float> updated(ratings.width);
  std::vector<float> fresh(ratings.width);
  weights.solve(ratings.prior, updated);
  solve_in_double(features, kLambda, ratings.rows, ratings.values, ratings.prior, fresh);
  EXPECT_LT(relative_difference(updated, fresh), 1e-4);

  UserWeights built(features, kLambda);
  ASSERT_TRUE(built.build(ratings.rows, ratings.values));
  built.solve(ratings.prior, updated);
  EXPECT_LT(relative_difference(updated, fresh), 1e-4);
}

TEST_P(UserWeightsTest, ObservationsOfATurnAreOneUpdate) {
  const size_t features = GetParam();
  const Ratings ratings(features, 30, 7);
  UserWeights one(features, kLambda);
  UserWeights several(features, kLambda);
  for (size_t i = 0; i < 30; ++i) ASSERT_TRUE(one.add(ratings.row(i), ratings.value(i)));
  ASSERT_TRUE(several.add(ratings.row(0, 11), ratings.value(0, 11)));
  ASSERT_TRUE(several.add(ratings.row(11, 19), ratings.value(11, 19)));
  std::vector<float> a(ratings.width);
  std::vector<float> b(ratings.width);
  one.solve(ratings.prior, a);
  several.solve(ratings.prior, b);
  EXPECT_LT(relative_difference(a, b), 1e-5);
}
// Checked without the functions that made them: (F'F + lambda I) w = F'y + lambda prior.
TEST_P(UserWeightsTest, BuiltWeightsSolveTheNormalEquations) {
  const size_t features = GetParam();
  for (const size_t count : {5, 16, 50, 130}) {
    const Ratings ratings(features, count, features + count);
    UserWeights weights(features, kLambda);
    ASSERT_TRUE(weights.build(ratings.rows, ratings.values));
    std::vector<float> built(ratings.width);
    weights.solve(ratings.prior, built);
    double left_squares = 0;
    double right_squares = 0;
    for (size_t j = 0; j < features; ++j) {
      double right = kLambda * ratings.prior[j];
      double left = kLambda * built[j];
      for (size_t i = 0; i < count; ++i) {
        const std::span<const float> row = ratings.row(i);
        right += static_cast<double>(ratings.values[i]) * row[j];
        for (size_t k = 0; k < features; ++k) left += static_cast<double>(row[j]) * row[k] * built[k];
      }
      left_squares += (left - right) * (left - right);
      right_squares += right * right;
    }
    EXPECT_LT(std::sqrt(left_squares / right_squares), 1e-4) << count << " observations";
    for (size_t j = features; j < ratings.width; ++j) EXPECT_EQ(built[j], 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Features, UserWeightsTest, testing::Values(1, 3, 7, 8, 9, 13, 16, 27, 32, 36, 40, 100, 129));

TEST(UserWeightsTest, WithoutObservationsTheyAreThePrior) {
  const Ratings ratings(10, 0, 3);
  std::vector<float> weights(ratings.width);
  UserWeights(10, kLambda).solve(ratings.prior, weights);
  EXPECT_LT(relative_difference(weights, ratings.prior), 1e-6);
}

TEST(UserWeightsTest, CollinearFeaturesHaveWeights) {
  Ratings ratings(20, 200, 3);
  for (size_t i = 0; i < 200; ++i) {
    for (size_t j = 0; j < 20; ++j) ratings.rows[i * ratings.width + j] = ratings.rows[i * ratings.width];
  }
  UserWeights weights(20, kLambda);
  ASSERT_TRUE(weights.add(ratings.rows, ratings.values));
  std::vector<float> updated(ratings.width);
  std::vector<float> fresh(ratings.width);
  weights.solve(ratings.prior, updated);
  solve_in_double(20, kLambda, ratings.rows, ratings.values, ratings.prior, fresh);
  EXPECT_LT(relative_difference(updated, fresh), 1e-3);
}

TEST(UserWeightsTest, APivotThatIsNotPositiveIsReported) {
  UserWeights weights(2, kLambda);
  std::vector<float> rows;
  for (int i = 0; i < 5; ++i) rows.insert(rows.end(), {1e30F, 1e30F, 0, 0, 0, 0, 0, 0});
  EXPECT_FALSE(weights.build(rows, std::vector<float>(5, 1)));
}

// A^-1 applied by solve(): b is the features, with the value 1 of one observation beside A.
TEST(UserWeightsTest, UncertaintiesAreThoseOfSingleSolves) {
  for (const size_t features : {1, 4, 7, 8, 9, 13, 30, 100}) {
    const Ratings ratings(features, 60, features);
    UserWeights weights(features, kLambda);
    ASSERT_TRUE(weights.build(ratings.rows, ratings.values));
    std::vector<const float*> rows;
    for (size_t i = 0; i < 60; ++i) rows.push_back(ratings.row(i).data());
    std::vector<float> uncertainties(rows.size());
    weights.uncertainties(rows, uncertainties);
    for (size_t i = 0; i < rows.size(); ++i) {
      std::vector<float> prior(ratings.row(i).begin(), ratings.row(i).end());  // A^-1 lambda f, with all values 0
      const std::vector<float> zeros(60);
      UserWeights same(features, kLambda);
      ASSERT_TRUE(same.build(ratings.rows, zeros));
      std::vector<float> solution(ratings.width);
      same.solve(prior, solution);
      float square = 0;
      for (size_t j = 0; j < features; ++j) square += solution[j] * prior[j] / kLambda;
      EXPECT_NEAR(uncertainties[i], std::sqrt(square), 1e-3 * std::sqrt(square)) << features << " " << i;
    }
  }
}

// f' A^-1 f, and draws whose variance along f is the same.
TEST(UserWeightsTest, DrawsHaveTheVarianceOfTheEstimate) {
  const Ratings ratings(5, 40, 9);
  UserWeights weights(5, kLambda);
  ASSERT_TRUE(weights.add(ratings.rows, ratings.values));
  std::vector<float> estimate(ratings.width);
  weights.solve(ratings.prior, estimate);
  const std::vector<const float*> row = {ratings.rows.data()};
  float uncertainty = 0;
  weights.uncertainties(row, std::span(&uncertainty, 1));
  Random random(5);
  std::vector<float> drawn(ratings.width);
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    weights.draw(estimate, 2, random, drawn);
    double along = 0;
    for (size_t j = 0; j < 5; ++j) along += static_cast<double>(drawn[j] - estimate[j]) * ratings.rows[j];
    sum += along;
    squares += along * along;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.03 * uncertainty * 2);
  EXPECT_NEAR(std::sqrt(squares / kDraws) / (2 * uncertainty), 1, 0.03);
}

TEST(CholeskyTest, ShermanMorrisonKeepsTheInverse) {
  const Ratings ratings(9, 50, 2);
  const size_t width = ratings.width;
  std::vector<double> inverse(9 * width);
  for (size_t k = 0; k < 9; ++k) inverse[k * width + k] = 1 / static_cast<double>(kLambda);
  std::vector<double> product(width);
  std::vector<double> right(width);
  for (size_t i = 0; i < 50; ++i) {
    const std::vector<double> row(ratings.row(i).begin(), ratings.row(i).end());
    ASSERT_TRUE(cholesky<double>().update_inverse(inverse.data(), 9, row.data(), product.data()));
    for (size_t j = 0; j < 9; ++j) right[j] += row[j] * ratings.values[i];
  }
  std::vector<double> solution(9);
  cholesky<double>().multiply(inverse.data(), 9, width, right.data(), solution.data());
  std::vector<float> fresh(width);
  const std::vector<float> zero(width);
  solve_in_double(9, kLambda, ratings.rows, ratings.values, zero, fresh);
  for (size_t k = 0; k < 9; ++k) EXPECT_NEAR(solution[k], fresh[k], 1e-5);
}

}  // namespace
}  // namespace foliot
