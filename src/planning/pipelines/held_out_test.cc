#include "planning/pipelines/held_out.h"

#include <gtest/gtest.h>

#include "foundation/base/test_seed.h"
#include "foundation/base/test_time.h"
#include "planning/pipelines/test_pipeline.h"

namespace foliot {
namespace {

// Beside the plan of the whole trace on fresh arrivals of the same process: what is held out must not promise
// more than these keep, but for the noise of one trace.
TEST(HeldOutTest, PromisesNoMoreThanFreshArrivalsKeep) {
  const uint64_t seed = fresh_seed();
  const PlannedPipeline pipeline =
      chain({{linear_kind("cpu", 1, ms(2), ms(6), 4)}, {linear_kind("cpu", 1, ms(4), ms(9), 4)}});
  const LatencyGoal goal{ms(100)};
  const auto draw = [&](uint64_t number) {
    return QueryTrace::draw(pipeline, gamma_arrivals(150, 2, Duration::seconds(20), number), number);
  };
  double held_out = 0;
  double fresh = 0;
  double seen = 0;
  constexpr int kTraces = 20;
  for (uint64_t i = 0; i < kTraces; ++i) {
    const QueryTrace trace = draw(seed + i);
    const auto judged = judge_held_out(pipeline, trace, goal);
    ASSERT_TRUE(judged.ok()) << judged.status().message();
    held_out += (judged->attainment[0] + judged->attainment[1]) / 2 / kTraces;
    EXPECT_LE(judged->least(), judged->attainment[0]);
    const auto plan = plan_pipeline(pipeline, trace, goal);
    ASSERT_TRUE(plan.ok());
    seen += plan->estimate.attainment() / kTraces;
    const QueryTrace other = draw(seed + kTraces + i);
    fresh += Estimator(pipeline, other, goal).estimate(plan->configuration).attainment() / kTraces;
  }
  EXPECT_LE(held_out, seen + 0.002) << "seed " << seed << ": what a plan was made for it keeps best";
  EXPECT_LE(held_out, fresh + 0.01) << "seed " << seed;
  EXPECT_GE(held_out, fresh - 0.04) << "seed " << seed;
}

TEST(HeldOutTest, HalvesThatCannotBePlannedAreErrors) {
  const PlannedPipeline pipeline = chain({{linear_kind("cpu", 1, ms(2), ms(6), 4)}});
  EXPECT_FALSE(judge_held_out(pipeline, {}, {ms(100)}).ok());
  const std::vector<Duration> one{ms(1)};
  EXPECT_FALSE(judge_held_out(pipeline, QueryTrace::draw(pipeline, one, 1), {ms(100)}).ok()) << "half is empty";
}

}  // namespace
}  // namespace foliot
