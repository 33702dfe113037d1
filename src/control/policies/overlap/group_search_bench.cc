// How long choosing an operator group takes: four candidates, the last ones cut, with a
// predictor of seven models (Abacus, section 7.7: 260 us).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "control/controller/overlap_predictor.h"
#include "control/controller/rolling_duration_model.h"
#include "control/policies/overlap/group_search.h"

namespace foliot::overlap {
namespace {

constexpr uint32_t kModels = 7, kOperators = 363, kLanes = 4;

void search(benchmark::State& state) {
  Random random(1);
  std::vector<ModelInfo> infos;
  std::vector<ProfiledModel> models;
  for (uint32_t id = 0; id < kModels; ++id) {
    ModelInfo& info = infos.emplace_back();
    info.id = ModelId(id);
    info.content = std::to_string(id);
    info.buckets.resize(1);
    info.only().seed_exec = {{Duration::milliseconds(20)}};
    ProfiledModel& model = models.emplace_back();
    model.content = info.content;
    model.operators = kOperators;
    for (uint32_t i = 1; i <= kOperators; ++i) {
      info.only().operator_ends.push_back(i / double{kOperators});
    }
    model.ends.resize(1);
    for (uint32_t width = 0; width < width_count(kLanes); ++width) {
      std::vector<float>& ends = model.ends[0].emplace_back();
      for (const double end : info.only().operator_ends) ends.push_back(static_cast<float>(end * 20e6));
    }
  }
  RollingDurationModel durations(
      std::make_shared<OverlapPredictor>(kLanes, models, Mlp(kModels * OverlapPredictor::kFeatures, random)));
  durations.add_device(KindId(0));
  durations.set_lane_count(DeviceId(0), kLanes);
  for (const ModelInfo& info : infos) durations.add_model(info, std::array{KindId(0)});
  const Runnable& runnable = infos[0].only();
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
