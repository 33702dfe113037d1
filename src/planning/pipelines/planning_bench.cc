// How fast the planner's parts are: one estimate of an hour at 150 queries per second, a plan.
//
//   make bench-planning
//
// `per query and stage` is the time of one core that a query takes in one stage.
#include <benchmark/benchmark.h>

#include "planning/pipelines/estimator.h"
#include "planning/pipelines/planner.h"
#include "planning/pipelines/test_pipeline.h"

namespace foliot {
namespace {

constexpr Duration kHour = Duration::seconds(3600);

// Three kinds: the slow one is cheap.
std::vector<StageKind> three_kinds(double slowness) {
  const auto us = [&](double value) { return Duration::from_seconds(value * slowness * 1e-6); };
  return {linear_kind("cpu", 0.05, us(4000), us(16'000), 8), linear_kind("small", 0.35, us(5000), us(2500)),
          linear_kind("large", 0.90, us(3000), us(900))};
}

PlannedPipeline four_stages() { return chain({three_kinds(0.3), three_kinds(1.5), three_kinds(1), three_kinds(2)}); }

void BM_Estimate(benchmark::State& state) {
  const PlannedPipeline pipeline = four_stages();
  const double variation = static_cast<double>(state.range(0));
  const QueryTrace trace = QueryTrace::draw(pipeline, gamma_arrivals(150, variation, kHour, 1), 1);
  Estimator estimator(pipeline, trace, {Duration::milliseconds(150)});
  const Configuration configuration{{{2, 8, 2}, {2, 8, 3}, {2, 8, 3}, {2, 8, 4}}};
  Estimate estimate;
  for (auto _ : state) estimate = estimator.estimate(configuration);
  state.counters["attainment"] = estimate.attainment();
  state.counters["per query and stage"] =
      benchmark::Counter(static_cast<double>(trace.size() * 4),
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_Estimate)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond);

void BM_Plan(benchmark::State& state) {
  const PlannedPipeline pipeline = four_stages();
  const double variation = static_cast<double>(state.range(0));
  const QueryTrace trace = QueryTrace::draw(pipeline, gamma_arrivals(150, variation, kHour, 1), 1);
  const LatencyGoal goal{Duration::milliseconds(150)};
  double cost = 0;
  for (auto _ : state) {
    const auto planned =
        plan_pipeline(pipeline, trace, goal, {.sample_queries = static_cast<uint64_t>(state.range(1))});
    if (!planned.ok()) return state.SkipWithError(planned.status().message().c_str());
    cost = planned->cost;
  }
  state.counters["dollars_per_hour"] = cost;
}
BENCHMARK(BM_Plan)
    ->ArgsProduct({{1, 2}, {0, 10'000, 20'000, 30'000, 60'000}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace foliot
