// Personal models: updates, solves, rebuilding, topK: make bench-personal.
#include <benchmark/benchmark.h>

#include <vector>

#include "personal/cholesky.h"
#include "personal/user_weights.h"

namespace foliot {
namespace {

constexpr float kLambda = 1;

std::vector<float> drawn_rows(size_t features, size_t count) {
  Random random(features);
  const size_t width = padded_rows(features);
  std::vector<float> rows(count * width);
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < features; ++j) rows[i * width + j] = static_cast<float>(random.normal());
  }
  return rows;
}

// One observation: the update and the new weights.
void BM_Update(benchmark::State& state) {
  const auto features = static_cast<size_t>(state.range(0));
  const size_t width = padded_rows(features);
  const std::vector<float> rows = drawn_rows(features, 1000);
  const std::vector<float> value = {1};
  const std::vector<float> prior(width);
  std::vector<float> weights(width);
  UserWeights user(features, kLambda);
  size_t i = 0;
  for (auto _ : state) {
    user.add(std::span(rows).subspan(i++ % 1000 * width, width), value);
    user.solve(prior, weights);
    benchmark::DoNotOptimize(weights.data());
  }
}
BENCHMARK(BM_Update)->Arg(10)->Arg(20)->Arg(50)->Arg(100)->Arg(200)->Arg(500)->Arg(1000);

// Sixteen observations of a turn.
void BM_UpdateOfATurn(benchmark::State& state) {
  const auto features = static_cast<size_t>(state.range(0));
  const size_t width = padded_rows(features);
  const std::vector<float> rows = drawn_rows(features, 16);
  const std::vector<float> values(16, 1);
  const std::vector<float> prior(width);
  std::vector<float> weights(width);
  UserWeights user(features, kLambda);
  for (auto _ : state) {
    user.add(rows, values);
    user.solve(prior, weights);
    benchmark::DoNotOptimize(weights.data());
  }
}
BENCHMARK(BM_UpdateOfATurn)->Arg(100)->Arg(1000);

// The factor alone: float32, double, and Sherman-Morrison in both.
template <typename T>
void BM_FactorUpdate(benchmark::State& state) {
  const auto features = static_cast<size_t>(state.range(0));
  const size_t width = padded_rows(features);
  std::vector<T> factor(factor_size(features));
  const std::vector<float> rows = drawn_rows(features, 1);
  T* column = factor.data();
  for (size_t k = 0; k < features; ++k) {
    column[k % kRowsGranule] = 1;
    column += width - k / kRowsGranule * kRowsGranule;
  }
  for (auto _ : state) {
    std::vector<T> row(rows.begin(), rows.end());
    cholesky<T>().update(factor.data(), features, row.data(), 1);
  }
}
BENCHMARK(BM_FactorUpdate<float>)->Arg(10)->Arg(100)->Arg(1000);
BENCHMARK(BM_FactorUpdate<double>)->Arg(10)->Arg(100)->Arg(1000);

template <typename T>
void BM_ShermanMorrison(benchmark::State& state) {
  const auto features = static_cast<size_t>(state.range(0));
  const size_t width = padded_rows(features);
  std::vector<T> inverse(features * width);
  for (size_t k = 0; k < features; ++k) inverse[k * width + k] = 1;
  const std::vector<float> rows = drawn_rows(features, 1);
  const std::vector<T> row(rows.begin(), rows.end());
  std::vector<T> product(width);
  for (auto _ : state) cholesky<T>().update_inverse(inverse.data(), features, row.data(), product.data());
}
BENCHMARK(BM_ShermanMorrison<float>)->Arg(10)->Arg(100)->Arg(1000);
BENCHMARK(BM_ShermanMorrison<double>)->Arg(10)->Arg(100)->Arg(1000);

// A user that is not in the cache, with so many observations.
void BM_Build(benchmark::State& state) {
  const auto features = static_cast<size_t>(state.range(0));
  const size_t width = padded_rows(features);
  const std::vector<float> rows = drawn_rows(features, static_cast<size_t>(state.range(1)));
  const std::vector<float> values(static_cast<size_t>(state.range(1)), 1);
  const std::vector<float> prior(width);
  std::vector<float> weights(width);
  UserWeights user(features, kLambda);
  for (auto _ : state) {
    user.build(rows, values);
    user.solve(prior, weights);
    benchmark::DoNotOptimize(weights.data());
  }
}
BENCHMARK(BM_Build)->Args({100, 1})->Args({100, 10})->Args({100, 50})->Args({100, 150})->Args({1000, 100});

}  // namespace
}  // namespace foliot
