// How long the choice of a variant takes, beside reading all variants (INFaaS, Table 7).
//
//   make bench-variants
//
// Arguments: variants; state of what is chosen (0: to be loaded, 1: Active). About five
// variants match each query. p99 and max are of single calls, with the clock's own time.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/variants/test_variants.h"

namespace foliot {
namespace {

constexpr TimePoint kInstant = TimePoint::from_nanoseconds(1);

struct Zoo {
  explicit Zoo(int64_t variants, bool active) {
    Random random(1);
    const char* kinds[] = {"cpu", "inferentia", "gpu"};
    for (uint32_t i = 0; i < 12; ++i) registry.add_device(DeviceId(i), kinds[i % 3], uint64_t{1} << 40);
    for (int64_t i = 0; i < variants; ++i) {
      const VariantId id = registry.add_variant(task, random_variant(std::to_string(i), random)).value();
      if (active && random.below(2) == 0) registry.add_instance(id, *registry.loading_device(id));
    }
    while (queries.size() < 1000) add_query(random);
  }
  // That about five variants match: as accurate as a random one, and the latency that leaves five.
  void add_query(Random& random) {
    const std::vector<VariantId>& all = registry.variants(task);
    const size_t from = random.below(all.size() - 5);
    std::vector<Duration> latencies;
    for (size_t i = from; i < all.size(); ++i) latencies.push_back(registry.variant(all[i]).latency());
    std::ranges::nth_element(latencies, latencies.begin() + 4);
    queries.push_back({.latency = latencies[4], .accuracy = registry.variant(all[from]).accuracy});
  }
  VariantRegistry registry;
  TaskId task = registry.add_task("classify");
  std::vector<VariantRequirements> queries;
};

// Each is made once: registering 10,000 variants one by one takes a while.
const Zoo& zoo_of(const benchmark::State& state) {
  static std::map<std::pair<int64_t, int64_t>, std::unique_ptr<Zoo>> zoos;
  std::unique_ptr<Zoo>& zoo = zoos[{state.range(0), state.range(1)}];
  if (!zoo) zoo = std::make_unique<Zoo>(state.range(0), state.range(1) == 1);
  return *zoo;
}

template <typename Choose>
void measure(benchmark::State& state, const Zoo& zoo, const Choose& choose) {
  std::vector<double> microseconds;
  size_t next = 0;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(choose(zoo.queries[next++ % zoo.queries.size()]));
    const auto end = std::chrono::steady_clock::now();
    microseconds.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
  }
  std::ranges::sort(microseconds);
  const auto at = [&](double quantile) {
    return microseconds[static_cast<size_t>(quantile * static_cast<double>(microseconds.size() - 1))];
  };
  state.counters["p50_us"] = at(0.5);
  state.counters["p99_us"] = at(0.99);
  state.counters["p999_us"] = at(0.999);
  state.counters["max_us"] = at(1);
}

void BM_Choose(benchmark::State& state, const char* name) {
  const Zoo& zoo = zoo_of(state);
  const auto policy = make_variant_policy(name).value();
  measure(state, zoo, [&](const VariantRequirements& asked) {
    return policy->get_variant(zoo.registry, zoo.task, asked, kInstant);
  });
}
BENCHMARK_CAPTURE(BM_Choose, infaas, "infaas")->ArgsProduct({{175, 10'000}, {0, 1}});
BENCHMARK_CAPTURE(BM_Choose, predicted, "predicted")->ArgsProduct({{175, 10'000}, {0, 1}});
BENCHMARK_CAPTURE(BM_Choose, scaled, "scaled")->ArgsProduct({{175, 10'000}, {0, 1}});

void BM_BruteForce(benchmark::State& state) {
  const Zoo& zoo = zoo_of(state);
  measure(state, zoo, [&](const VariantRequirements& asked) {
    return brute_force(false, zoo.registry, zoo.task, asked, kInstant);
  });
}
BENCHMARK(BM_BruteForce)->ArgsProduct({{175, 10'000}, {0, 1}});

void BM_LoadChanges(benchmark::State& state) {
  Zoo zoo(state.range(0), true);
  std::vector<VariantId> loaded;
  for (const VariantId id : zoo.registry.variants(zoo.task)) {
    if (!zoo.registry.instances(id).empty()) loaded.push_back(id);
  }
  int64_t count = 0;
  for (auto _ : state) {
    const VariantId id = loaded[static_cast<size_t>(count++) % loaded.size()];
    zoo.registry.set_begins(id, zoo.registry.instances(id).front().device, TimePoint::from_nanoseconds(count));
  }
}
BENCHMARK(BM_LoadChanges)->Arg(175)->Arg(10'000);

}  // namespace
}  // namespace foliot
