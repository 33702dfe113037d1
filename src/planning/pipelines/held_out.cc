#include "planning/pipelines/held_out.h"

namespace foliot {

Result<HeldOut> judge_held_out(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal,
                               const PlannerOptions& options) {
  if (trace.size() == 0) return Status::invalid_argument("the trace is empty: planning needs arrivals");
  const Duration start = Duration::nanoseconds(trace.arrivals_ns.front());
  const Duration end = start + trace.length() + Duration::nanoseconds(1);
  const Duration middle = start + trace.length() / 2;
  const std::array<QueryTrace, 2> halves{trace.between(start, middle), trace.between(middle, end)};
  HeldOut held_out;
  for (size_t half = 0; half < halves.size(); ++half) {
    FOLIOT_ASSIGN_OR_RETURN(const PipelinePlan plan, plan_pipeline(pipeline, halves[half], goal, options));
    Estimator other(pipeline, halves[1 - half], goal);
    held_out.attainment[half] = other.estimate(plan.configuration).attainment();
  }
  return held_out;
}

}  // namespace foliot
