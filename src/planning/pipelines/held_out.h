// HeldOut: what plans keep on arrivals that they were not made for.
//
// A plan is made to meet its goal on its trace and not beyond, so on other arrivals of the same process it keeps
// less, and the shorter the trace, the less. So a plan is made for either half of the trace and judged on the
// other half. That is a little too strict: the plan of the whole trace has seen twice as much.
//
// A pure function; of two plans by plan_pipeline().
#ifndef FOLIOT_PLANNING_PIPELINES_HELD_OUT_H_
#define FOLIOT_PLANNING_PIPELINES_HELD_OUT_H_

#include <algorithm>
#include <array>

#include "foundation/base/status.h"
#include "planning/pipelines/planner.h"

namespace foliot {

struct HeldOut {
  // The attainment of the plan for one half on the other half: first on the second, then on the first.
  std::array<double, 2> attainment{};

  double least() const { return std::min(attainment[0], attainment[1]); }
};

// Errors: those of plan_pipeline() for one half.
Result<HeldOut> judge_held_out(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal,
                               const PlannerOptions& options = {});

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_HELD_OUT_H_
