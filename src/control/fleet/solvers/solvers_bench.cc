// How long the integer program of the model autoscaler takes (INFaaS, section 4.2.1, which reports 50 s): 100
// architectures of 8 variants each, some of them running, with room for all.
//
//   make bench-solvers
//
// The argument is the seed of the state. `cost` is the same of both solvers where both answers are `optimal`; HiGHS is
// a process of its own for each call, and `solving_ms` is without its start. It needs highspy in .venv.
#include <benchmark/benchmark.h>

#include "control/fleet/scalers/test_problems.h"
#include "control/fleet/solvers/cbc_solver.h"
#include "control/fleet/solvers/highs_solver.h"

namespace foliot {
namespace {

constexpr Duration kLimit = Duration::seconds(10);

ScalingProblem large_problem(const benchmark::State& state) {
  Random random(static_cast<uint64_t>(state.range(0)));
  ScalingProblem problem = random_problem(random, 100, 8);
  for (ScalableResource& resource : problem.resources) resource.total = 1'000'000;
  return problem;
}

void measure(benchmark::State& state, Solver& solver) {
  const ScalingProblem problem = large_problem(state);
  for (auto _ : state) {
    const auto plan = solver.solve(problem, kLimit);
    if (!plan.ok()) return state.SkipWithError(plan.status().message().c_str());
    state.counters["optimal"] = plan->optimal ? 1 : 0;
    state.counters["cost"] = static_cast<double>(plan->cost);
  }
}

void BM_Cbc(benchmark::State& state) {
  CbcSolver solver;
  measure(state, solver);
}

void BM_Highs(benchmark::State& state) {
  HighsSolver solver(
      {.command = {".venv/bin/python", "-m", "foliot_tools.highs"}, .environment = {"PYTHONPATH=python"}});
  measure(state, solver);
  state.counters["solving_ms"] = solver.solving().to_milliseconds();
}

BENCHMARK(BM_Cbc)->DenseRange(1, 10)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(BM_Highs)->DenseRange(1, 10)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(3);

}  // namespace
}  // namespace foliot
