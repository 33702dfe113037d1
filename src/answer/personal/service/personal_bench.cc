// Personal models: updates, solves, rebuilding, topK: make bench-personal.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "answer/personal/items/test_items.h"
#include "answer/personal/service/personal_model.h"
#include "answer/personal/weights/cholesky.h"
#include "answer/personal/weights/user_weights.h"
#include "foundation/store/disk_storage.h"
#include "foundation/store/simulated_storage.h"

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
BENCHMARK(BM_Build)
    ->Args({100, 1})
    ->Args({100, 10})
    ->Args({100, 50})
    ->Args({100, 100})
    ->Args({100, 150})
    ->Args({1000, 100});

// All of 10,000 items, 10 places.
void top_k_of_all(benchmark::State& state, ExplorationKind kind, uint64_t kept_bytes = 0) {
  const TestFolder folder("personal_bench");
  const auto table = drawn_items(folder.path, static_cast<size_t>(state.range(0)), 10'000);
  PersonalModel::Options options;
  options.exploration.kind = kind;
  options.lists_bytes_max = kept_bytes;
  const auto model = PersonalModel::open(std::make_unique<SimulatedStorage>(), {.items = table}, options).value();
  std::atomic<bool> is_done = false;
  std::vector<UserObservation> observations;
  for (uint64_t id = 0; id < 50; ++id) observations.push_back({id, 10 * id, 1});
  FOLIOT_CHECK(model->observe(1, observations, [&is_done](const Status&) { is_done = true; }).ok());
  while (!is_done) std::this_thread::yield();
  for (auto _ : state) benchmark::DoNotOptimize(model->top_k(1, {}, 10));
}
void BM_TopKGreedy(benchmark::State& state) { top_k_of_all(state, ExplorationKind::kGreedy); }
void BM_TopKThompson(benchmark::State& state) { top_k_of_all(state, ExplorationKind::kThompson); }
void BM_TopKLinucb(benchmark::State& state) { top_k_of_all(state, ExplorationKind::kLinucb); }
BENCHMARK(BM_TopKGreedy)->Arg(10)->Arg(50)->Arg(100)->Arg(200)->Arg(1000);
BENCHMARK(BM_TopKThompson)->Arg(10)->Arg(100);
void BM_TopKKeptGreedy(benchmark::State& state) { top_k_of_all(state, ExplorationKind::kGreedy, 1 << 20); }
void BM_TopKKeptLinucb(benchmark::State& state) { top_k_of_all(state, ExplorationKind::kLinucb, 1 << 20); }
BENCHMARK(BM_TopKLinucb)->Arg(100);
BENCHMARK(BM_TopKKeptGreedy)->Arg(100);
BENCHMARK(BM_TopKKeptLinucb)->Arg(100);

// Figure 2.4: so many candidates, d = 100.
void BM_TopKOfCandidates(benchmark::State& state) {
  const TestFolder folder("personal_bench");
  const auto table = drawn_items(folder.path, 100, 10'000);
  std::vector<float> weights(table->width(), 0.5F);
  std::vector<size_t> candidates;
  for (size_t i = 0; i < static_cast<size_t>(state.range(0)); ++i) candidates.push_back(i * 7919 % 10'000);
  for (auto _ : state) benchmark::DoNotOptimize(top_k(table->all(), weights, 10, &candidates));
}
BENCHMARK(BM_TopKOfCandidates)->Arg(10)->Arg(100)->Arg(1000)->Arg(10'000);

// Reads (predict, and topK every tenth time) of 1,000 users with 50 observations each while one observation follows
// another, without and with a swap after the other. Quantiles of the reads are counters, in microseconds.
void BM_ReadsBesideSwaps(benchmark::State& state) {
  const bool swaps = state.range(0) != 0;
  const TestFolder folder("personal_bench");
  const auto table = drawn_items(folder.path, 100, 1000);
  const auto model = PersonalModel::open(std::make_unique<SimulatedStorage>(), {.items = table}, {}).value();
  Random random(1);
  uint64_t id = 0;
  const auto observe = [&](uint64_t user) {
    ++id;
    const std::vector<UserObservation> one = {{id, 10 * random.below(1000), 1}};
    while (!model->observe(user, one, [](const Status&) {}).ok()) std::this_thread::yield();
  };
  for (int i = 0; i < 50'000; ++i) observe(random.below(1000));
  std::atomic<bool> stops = false;
  std::atomic<uint64_t> swapped = 0;
  std::thread swapper([&] {
    for (uint64_t name = 2; swaps && !stops; ++name) {
      FOLIOT_CHECK(model->swap({.name = std::to_string(name), .items = table}).ok());
      ++swapped;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  std::vector<double> durations;
  for (auto _ : state) {
    const uint64_t user = random.below(1000);
    observe(user);
    const auto begin = std::chrono::steady_clock::now();
    if (id % 10 == 0) {
      benchmark::DoNotOptimize(model->top_k(user, {}, 10));
    } else {
      benchmark::DoNotOptimize(model->predict(user, 10));
    }
    durations.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  stops = true;
  swapper.join();
  std::sort(durations.begin(), durations.end());
  const auto quantile = [&](double part) { return durations[static_cast<size_t>(part * (durations.size() - 1.0))]; };
  state.counters["p50"] = quantile(0.5);
  state.counters["p99"] = quantile(0.99);
  state.counters["p999"] = quantile(0.999);
  state.counters["max"] = durations.back();
  state.counters["swaps"] = static_cast<double>(swapped);
}
BENCHMARK(BM_ReadsBesideSwaps)->Arg(0)->Arg(1)->Iterations(100'000);

// 10,000 observations, of a user of 20,000 each, until all are on disk (in the current folder); and then, if it
// reads, a prediction for each of these users, whose weights are brought up to date. Processor time is that of
// the whole process.
void observe_many(benchmark::State& state, bool reads) {
  constexpr uint64_t kObservations = 10'000;
  const TestFolder folder("personal_bench");
  const auto table = drawn_items(folder.path, 100, 10'000);
  const std::filesystem::path path = "foliot_personal_bench";
  auto model = PersonalModel::open(DiskStorage::open(path).value(), {.items = table}, {}).value();
  std::atomic<uint64_t> answered = 0;
  const auto done = [&answered](const Status& status) { answered += status.ok() ? 1 : 0; };
  uint64_t id = 0;
  for (auto _ : state) {
    for (uint64_t i = 0; i < kObservations; ++i) {
      ++id;
      const std::vector<UserObservation> one = {{id, id * 7919 % 10'000 * 10, 1}};
      while (!model->observe(id % 20'000, one, done).ok()) std::this_thread::yield();
    }
    while (answered < id) std::this_thread::sleep_for(std::chrono::microseconds(100));
    for (uint64_t i = 0; i < kObservations && reads; ++i)
      benchmark::DoNotOptimize(model->predict((id - i) % 20'000, 10));
  }
  state.SetItemsProcessed(static_cast<int64_t>(id));
  model.reset();
  std::filesystem::remove_all(path);
}
void BM_Observe(benchmark::State& state) { observe_many(state, false); }
void BM_ObserveAndPredict(benchmark::State& state) { observe_many(state, true); }
BENCHMARK(BM_Observe)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK(BM_ObserveAndPredict)->MeasureProcessCPUTime()->UseRealTime();

}  // namespace
}  // namespace foliot
