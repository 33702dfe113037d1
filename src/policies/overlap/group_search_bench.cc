// How long choosing an operator group takes: four candidates, the last ones cut, with a
// predictor of seven models (Abacus, section 7.7: 260 us).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "controller/overlap_predictor.h"
#include "controller/rolling_duration_model.h"
#include "policies/overlap/group_search.h"

namespace foliot::overlap {
namespace {

constexpr uint32_t kModels = 7;

void search(benchmark::State& state) {
  Random random(1);
  std::vector<ModelId> models;
  for (uint32_t id = 0; id < kModels; ++id) models.emplace_back(id);
  const RollingDurationModel durations(
      std::make_shared<OverlapPredictor>(models, Mlp(kModels * OverlapPredictor::kFeatures, random)));
  Runnable runnable;
  for (int i = 1; i <= 363; ++i) runnable.operator_ends.push_back(i / 363.0);
  std::vector<double> us;
  for (auto _ : state) {
    std::vector<Candidate> candidates;
    for (uint32_t i = 0; i < kGroupMax; ++i) {
      const ExecShape shape{.device = DeviceId(0), .model = ModelId(i)};
      candidates.push_back({shape, &runnable, Duration::from_milliseconds(5 + 45 * random.uniform())});
    }
    const Duration limit = Duration::from_milliseconds(10 + 90 * random.uniform());
    const auto begin = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(search_group(candidates, limit, durations));
    us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  std::ranges::sort(us);
  state.counters["p50_us"] = us[us.size() / 2];
  state.counters["p99_us"] = us[us.size() * 99 / 100];
}
BENCHMARK(search);

}  // namespace
}  // namespace foliot::overlap
