// ExactPlanner: the cheapest configuration of a small pipeline, by branch and bound: what the
// greedy planner (planning/pipelines/planner.h) is compared with.
//
// It takes for granted that a stage that becomes faster (more replicas, or the fastest kind with
// a replica for every query) does not make queries later. Batches break that only rarely: a
// replica that is idle earlier may begin a smaller batch.
#ifndef FOLIOT_PLANNING_PIPELINES_EXACT_PLANNER_H_
#define FOLIOT_PLANNING_PIPELINES_EXACT_PLANNER_H_

#include <cstdint>

#include "foundation/base/status.h"
#include "planning/pipelines/planner.h"

namespace foliot {

// Begins with `known`, which meets the goal. Errors: kResourceExhausted: it would take more than
// `estimates_most` estimates.
Result<PipelinePlan> plan_exactly(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal,
                                  const Configuration& known, uint64_t estimates_most = 1'000'000);

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_EXACT_PLANNER_H_
