// CostCurve: what a pipeline costs at each SLO (InferLine, Figure 4.9), and its picture.
#ifndef FOLIOT_PLANNING_PIPELINES_COST_CURVE_H_
#define FOLIOT_PLANNING_PIPELINES_COST_CURVE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/time.h"
#include "planning/pipelines/planner.h"

namespace foliot {

struct CostPoint {
  Duration slo;
  double cost = 0;         // dollars per hour, of the plan
  double coarse_cost = 0;  // of whole pipelines for the peak (CG-Peak)
};

// Plans for `points` SLOs, each longer than the one before by the same factor, from just above
// the service time to the longer of 4 times the service time and twice `slo`. `slo` is one of them.
// REQUIRES: a trace that is not empty; slo above the service time; points > 1.
std::vector<CostPoint> cost_curve(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal,
                                  const PlannerOptions& options, uint32_t points);

// As an SVG. `slo` is marked. REQUIRES: at least two points.
std::string draw_cost_curve(std::string_view title, const std::vector<CostPoint>& points, Duration slo);

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_COST_CURVE_H_
