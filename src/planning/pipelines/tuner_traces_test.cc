// What tuners keep, cost and change on arrivals that rise and fall.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "foundation/base/test_seed.h"
#include "foundation/base/test_time.h"
#include "planning/pipelines/planner.h"
#include "planning/pipelines/replan_tuner.h"
#include "planning/pipelines/test_pipeline.h"
#include "planning/pipelines/tuned_run.h"

namespace foliot {
namespace {

constexpr double kLength = 300;

struct Tried {
  std::string name;
  PlannedPipeline pipeline;
  LatencyGoal goal;
  double rate;
};

std::vector<Tried> pipelines() {
  PlannedPipeline conditional = chain({{linear_kind("cpu", 1, ms(1), ms(5), 8)},
                                       {linear_kind("cpu", 1, ms(2), ms(9), 8), linear_kind("gpu", 4, ms(3), ms(1))},
                                       {linear_kind("cpu", 1, ms(1), ms(3), 8)}});
  conditional.stages[1].probability = 0.4;
  conditional.stages[1].scale_factor = 0.4;
  conditional.stages[2].scale_factor = 0.4;
  return {{"short",
           chain({{linear_kind("cpu", 1, ms(2), ms(6), 4)}, {linear_kind("cpu", 1, ms(4), ms(9), 4)}}),
           {ms(100)},
           100},
          {"conditional", conditional, {ms(150)}, 200},
          {"long", four_stages(), {ms(200)}, 300}};
}

// Dollars of the replicas that the rate of each second needs in full batches.
double capacity_dollars(const Tried& tried, const Configuration& planned, const QueryTrace& trace) {
  std::vector<double> counts(static_cast<size_t>(kLength) + 1);
  for (const int64_t at : trace.arrivals_ns) counts[static_cast<size_t>(at / 1'000'000'000)] += 1;
  double dollars = 0;
  for (const double rate : counts) {
    for (size_t i = 0; i < planned.stages.size(); ++i) {
      const PlannedStage& stage = tried.pipeline.stages[i];
      const double replicas = std::ceil(rate / (throughput(stage, planned.stages[i]) / planned.stages[i].replicas));
      dollars += std::max(1.0, replicas) * kind_of(stage, planned.stages[i]).price / 3600;
    }
  }
  return dollars;
}

struct Row {
  double dollars = 0;
  double attainment = 0;
  size_t changes = 0;
};

Row run(const Tried& tried, const Configuration& planned, const QueryTrace& trace, ReplanTuner& tuner) {
  const TunedRunOptions options{.activation = Duration::seconds(1), .late = LateQueries::kRefused};
  const TunedRun run = run_tuned(tried.pipeline, planned, trace, tried.goal, tuner, options);
  Row row{.dollars = run.dollars, .attainment = run.estimate.attainment()};
  for (const auto& stage : run.changes) row.changes += stage.size();
  return row;
}

// A replica serves 1 s after the decision. What a spike brings in that second is lost, with any tuner that does not
// keep spare replicas.
TEST(TunerTracesTest, ReplanOfAPlanKeepsTheGoalAndChangesNothingAtSteadyLoad) {
  const uint64_t seed = fresh_seed();
  double dollars = 0;
  double dollars_before = 0;
  double attainment = 0;
  double attainment_before = 0;
  size_t steady_changes = 0;
  for (const Tried& tried : pipelines()) {
    const QueryTrace planned_on =
        QueryTrace::draw(tried.pipeline, gamma_arrivals(tried.rate, 1, Duration::seconds(300), seed), seed);
    const auto plan = plan_pipeline(tried.pipeline, planned_on, tried.goal);
    ASSERT_TRUE(plan.ok());
    TuningPlan tuning = tuning_plan(tried.pipeline, plan->configuration, planned_on);
    tuning.goal = tried.goal;
    std::vector<StageEdges> edges;
    for (const PlannedStage& stage : tried.pipeline.stages) edges.push_back({stage.parents, stage.needs});
    Random random(seed);
    for (const std::string shape : {"steady", "step", "ramp", "spike"}) {
      const double most = 1.5 + (shape == "spike" ? 0.7 : 2.5) * random.uniform();
      const QueryTrace trace =
          QueryTrace::draw(tried.pipeline, shaped_arrivals(shape, tried.rate, most, kLength, random), seed);
      ReplanTuner of_plan(tuning, edges, ReplanOptions::of_server());
      const Row row = run(tried, plan->configuration, trace, of_plan);
      ReplanTuner of_last_minute(tried.pipeline, plan->configuration, tried.goal, ReplanOptions::of_server());
      const Row before = run(tried, plan->configuration, trace, of_last_minute);
      dollars += row.dollars;
      dollars_before += before.dollars;
      const double needed = capacity_dollars(tried, plan->configuration, trace);
      const std::string what = fmt::format(
          "seed {}: {:11} {:6} x{:.1f} {:.2f} %, {:.3f} dollars, {:.2f} times what capacity needs, {} changes; by the "
          "last "
          "minute alone {:.2f} %, {:.3f}, {}",
          seed, tried.name, shape, most, 100 * row.attainment, row.dollars, row.dollars / needed, row.changes,
          100 * before.attainment, before.dollars, before.changes);
      fmt::print("{}\n", what);
      EXPECT_GE(row.attainment, std::min(0.985, before.attainment - 0.01)) << what;
      attainment += row.attainment;
      attainment_before += before.attainment;
      EXPECT_LE(row.dollars, 2 * needed) << what;
      if (shape == "steady") steady_changes += row.changes;
    }
  }
  EXPECT_GE(attainment, attainment_before - 0.25) << "seed " << seed << ": two points a run";
  EXPECT_LE(dollars, 1.15 * dollars_before) << "seed " << seed;
  EXPECT_LE(steady_changes, 2u) << "seed " << seed;
}

}  // namespace
}  // namespace foliot
