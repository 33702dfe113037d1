#include "answer/personal/weights/user_weights.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "answer/personal/weights/cholesky.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

// Up to this many observations are added to lambda I sooner than it is decomposed with them.
constexpr size_t kRotationsMax = 4;

template <typename T>
void add_to_diagonal(std::vector<T>& matrix, size_t rows, T value) {
  T* column = matrix.data();
  for (size_t k = 0; k < rows; ++k) {
    const size_t begin = k / kRowsGranule * kRowsGranule;
    column[k - begin] += value;
    column += padded_rows(rows) - begin;
  }
}

}  // namespace

UserWeights::UserWeights(size_t features, float lambda)
    : features_(features), lambda_(lambda), factor_(factor_size(features)), sums_(features) {
  FOLIOT_CHECK(features >= 1 && features <= kFeaturesMax && lambda > 0);
  add_to_diagonal(factor_, features_, std::sqrt(static_cast<double>(lambda_)));
}

void UserWeights::add_sums(std::span<const float> rows, std::span<const float> values) {
  const size_t width = padded_rows(features_);
  FOLIOT_CHECK(rows.size() == values.size() * width);
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    const float* const row = rows.data() + i * width;
    for (size_t j = 0; j < features_; ++j) sums_[j] += value * row[j];
  }
}

bool UserWeights::add(std::span<const float> rows, std::span<const float> values) {
  add_sums(rows, values);
  updates_ += static_cast<uint32_t>(values.size());
  std::vector<double> copy(rows.begin(), rows.end());
  return cholesky<double>().update(factor_.data(), features_, copy.data(), values.size());
}

bool UserWeights::build(std::span<const float> rows, std::span<const float> values) {
  std::fill(sums_.begin(), sums_.end(), 0.0);
  std::fill(factor_.begin(), factor_.end(), 0.0);
  updates_ = 0;
  if (values.size() <= kRotationsMax) {
    add_to_diagonal(factor_, features_, std::sqrt(static_cast<double>(lambda_)));
    return add(rows, values);
  }
  add_sums(rows, values);
  const std::vector<double> copy(rows.begin(), rows.end());
  cholesky<double>().add_products(factor_.data(), features_, copy.data(), values.size());
  add_to_diagonal(factor_, features_, static_cast<double>(lambda_));
  return cholesky<double>().decompose(factor_.data(), features_);
}

void UserWeights::solve(std::span<const float> prior, std::span<float> weights) const {
  std::vector<double> solution(weights.size());
  for (size_t i = 0; i < features_; ++i) solution[i] = sums_[i] + static_cast<double>(lambda_) * prior[i];
  cholesky<double>().solve_lower(factor_.data(), features_, solution.data());
  cholesky<double>().solve_upper(factor_.data(), features_, solution.data());
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(solution[i]);
}

void UserWeights::draw(std::span<const float> weights, float deviation, Random& random, std::span<float> drawn) const {
  std::vector<double> around(drawn.size());
  for (size_t i = 0; i < features_; ++i) around[i] = deviation * random.normal();
  cholesky<double>().solve_upper(factor_.data(), features_, around.data());
  std::fill(drawn.begin(), drawn.end(), 0.0F);
  for (size_t i = 0; i < features_; ++i) drawn[i] = static_cast<float>(weights[i] + around[i]);
}

void UserWeights::uncertainties(std::span<const float* const> rows, std::span<float> uncertainties) const {
  std::vector<double> sides(padded_rows(features_) * kSidesCount);
  for (size_t begin = 0; begin < rows.size(); begin += kSidesCount) {
    const size_t count = std::min(kSidesCount, rows.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < features_; ++j) sides[j * kSidesCount + i] = rows[begin + i][j];
    }
    cholesky<double>().solve_lower_many(factor_.data(), features_, sides.data());
    std::array<double, kSidesCount> sums{};
    for (size_t j = 0; j < features_; ++j) {
      for (size_t i = 0; i < kSidesCount; ++i) sums[i] += sides[j * kSidesCount + i] * sides[j * kSidesCount + i];
    }
    for (size_t i = 0; i < count; ++i) uncertainties[begin + i] = static_cast<float>(std::sqrt(sums[i]));
  }
}

void solve_in_double(size_t features, float lambda, std::span<const float> rows, std::span<const float> values,
                     std::span<const float> prior, std::span<float> weights) {
  const size_t width = padded_rows(features);
  const std::vector<double> wide(rows.begin(), rows.end());
  std::vector<double> matrix(factor_size(features));
  cholesky<double>().add_products(matrix.data(), features, wide.data(), values.size());
  add_to_diagonal(matrix, features, static_cast<double>(lambda));
  FOLIOT_CHECK(cholesky<double>().decompose(matrix.data(), features));
  std::vector<double> right(width);
  for (size_t i = 0; i < features; ++i) right[i] = static_cast<double>(lambda) * prior[i];
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = 0; j < features; ++j) right[j] += static_cast<double>(values[i]) * wide[i * width + j];
  }
  cholesky<double>().solve_lower(matrix.data(), features, right.data());
  cholesky<double>().solve_upper(matrix.data(), features, right.data());
  for (size_t i = 0; i < width; ++i) weights[i] = static_cast<float>(right[i]);
}

double relative_difference(std::span<const float> a, std::span<const float> b) {
  double difference = 0;
  double size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    size += static_cast<double>(b[i]) * b[i];
  }
  return difference == 0 ? 0 : std::sqrt(difference / size);
}

}  // namespace foliot
