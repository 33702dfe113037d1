// A plan that holds on other arrivals with a chosen confidence.
//
// A plan meets its goal on its trace barely, and on the next trace of the same process three times of four. So it gets
// more replicas until it meets the goal on that share of traces that are drawn from its own. Each is drawn twice, of
// the trace and of what was drawn: the trace itself is one draw of the process, as the next one will be, and both
// differ from what is usual. What is drawn are blocks of successive gaps with their visits, so that bursts stay whole.
// The largest batch of each stage is chosen anew with the replicas; the kinds of devices stay.
//
// Pure functions; one seed gives the same plan.
#ifndef FOLIOT_PLANNING_PIPELINES_CONFIDENT_PLAN_H_
#define FOLIOT_PLANNING_PIPELINES_CONFIDENT_PLAN_H_

#include <cstdint>

#include "foundation/base/random.h"
#include "foundation/base/status.h"
#include "planning/pipelines/planner.h"

namespace foliot {

// As long as `trace`, of blocks of its queries. REQUIRES: a trace that has a rate.
QueryTrace redraw(const QueryTrace& trace, Random& random);

// `plan` with the replicas and batches that it needs; 0 changes nothing. `confidence`: the share of kConfidenceTraces
// traces on which the goal is met, as on the trace itself. REQUIRES: it is for this trace. Errors: kInvalidArgument
// where kPlannedReplicasMax of each stage are not enough, it takes more devices than there are, or the trace has too
// few queries to draw others from, or all at one instant.
Result<PipelinePlan> with_confidence(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal,
                                     PipelinePlan plan, double confidence, uint64_t seed = 1);

inline constexpr uint32_t kConfidenceTraces = 100;

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_CONFIDENT_PLAN_H_
