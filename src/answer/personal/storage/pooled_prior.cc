#include "answer/personal/storage/pooled_prior.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "answer/personal/weights/cholesky.h"

namespace foliot {

PooledPrior::PooledPrior(const ItemFeatures& items, float lambda)
    : items_(items),
      lambda_(lambda),
      matrix_(factor_size(items.features())),
      sums_(items.width()),
      weights_(items.width()) {}

double PooledPrior::gather(const Part& part, const ValueRange& range) {
  rows_.clear();
  values_.clear();
  double squares = 0;
  for (size_t i = 0; i < part.item_ids.size(); ++i) {
    const float value = part.item_values[i];
    const std::optional<std::span<const float>> row = items_.features_of(part.item_ids[i]);
    if (!row || !range.contains(value)) continue;
    rows_.insert(rows_.end(), row->begin(), row->end());
    values_.push_back(value);
    for (const float feature : *row) squares += static_cast<double>(feature) * feature;
  }
  return squares;
}

void PooledPrior::add(double squares, double sign) {
  const size_t width = items_.width();
  const double scale = 1 / std::sqrt(lambda_ + squares);
  for (double& entry : rows_) entry *= scale;
  for (size_t i = 0; i < values_.size(); ++i) {
    const double value = sign * scale * values_[i];
    for (size_t j = 0; j < width; ++j) sums_[j] += value * rows_[i * width + j];
  }
  product_.assign(matrix_.size(), 0);
  cholesky<double>().add_products(product_.data(), items_.features(), rows_.data(), values_.size());
  for (size_t i = 0; i < matrix_.size(); ++i) matrix_[i] += sign * product_[i];
}

// A part is taken out as it was put in. Where the features of an item have changed since, as those that a model
// computes may, all is summed anew.
void PooledPrior::refresh(const Population& population, const ValueRange& range) {
  const ValueRange before = std::exchange(range_, range);
  const auto is_same = [&](const Part& part, const Population::Sampled& sampled) {
    return part.revision == sampled.revision &&
           (before == range || before.clip(part.values) == range.clip(part.values));
  };
  const auto take_out = [&](const Part& part) {
    const double squares = gather(part, before);
    if (squares == part.squares) add(squares, -1);
    return squares == part.squares;
  };
  for (auto part = parts_.begin(); part != parts_.end();) {
    const auto sampled = population.kept().find(part->first);
    if (sampled != population.kept().end() && population.is_sampled(sampled->second) &&
        is_same(part->second, sampled->second)) {
      ++part;
      continue;
    }
    if (!take_out(part->second)) {
      rebuild(population, range);
      return;
    }
    part = parts_.erase(part);
  }
  for (const auto& [user, sampled] : population.kept()) {
    if (!population.is_sampled(sampled)) continue;
    const auto [part, is_new] = parts_.try_emplace(user);
    if (!is_new) continue;
    part->second = {.revision = sampled.revision, .item_ids = sampled.items, .item_values = sampled.values};
    for (const float value : sampled.values) part->second.values.include(value);
    part->second.squares = gather(part->second, range);
    add(part->second.squares, 1);
    for (const double value : values_) summed_ = std::max(summed_, std::abs(value));
  }
  double largest = 0;
  for (const auto& [user, part] : parts_) {
    const ValueRange counted = range.clip(part.values);
    largest = std::max<double>({largest, std::abs(counted.low), std::abs(counted.high)});
  }
  summed_ > kCancelling* largest ? rebuild(population, range) : solve();
}

void PooledPrior::rebuild(const Population& population, const ValueRange& range) {
  parts_.clear();
  summed_ = 0;
  std::fill(matrix_.begin(), matrix_.end(), 0);
  std::fill(sums_.begin(), sums_.end(), 0);
  refresh(population, range);
}

void PooledPrior::solve() {
  const size_t features = items_.features();
  std::vector<double> factor = matrix_;
  double* column = factor.data();
  for (size_t k = 0; k < features; ++k) {
    const size_t begin = k / kRowsGranule * kRowsGranule;
    column[k - begin] += kOwnShare;
    column += padded_rows(features) - begin;
  }
  std::fill(weights_.begin(), weights_.end(), 0.0F);
  if (!cholesky<double>().decompose(factor.data(), features)) return;
  std::vector<double> right = sums_;
  cholesky<double>().solve_lower(factor.data(), features, right.data());
  cholesky<double>().solve_upper(factor.data(), features, right.data());
  for (size_t i = 0; i < features; ++i) weights_[i] = static_cast<float>(right[i]);
}

}  // namespace foliot
