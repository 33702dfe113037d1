// ScalingProblem: how many instances of each variant a task should have, as the integer program
// of the paper's section 4.2.1:
//
//   minimise  sum C (d + lambda T_load max(d, 0))
//   subject to
//     (1) sum Q (N + d) >= load           the instances can take the load, slack included
//     (2) T_inf <= slo         if d > 0   what is loaded meets the task's SLO
//     (3) sum R (N + d) <= total          of each type of resource
//     (4) N + d >= 0
//
// d is how many instances are loaded (above 0) or unloaded (below 0). Costs are integers, in
// micro-dollars per second: as dollars they vanish in the tolerances of solvers.
#ifndef FOLIOT_CONTROL_FLEET_SCALERS_SCALING_PROBLEM_H_
#define FOLIOT_CONTROL_FLEET_SCALERS_SCALING_PROBLEM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "control/variants/variant.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct ScalableVariant {
  std::string name;
  std::string architecture;
  MicroDollarsPerSecond price = 0;  // C, of an instance; at least 0
  double saturation = 0;            // Q, queries per second; above 0
  Duration latency;                 // T_inf
  Duration load;                    // T_load
  int64_t running = 0;              // N
  // R of an instance, by position in ScalingProblem::resources; none are 0.
  std::vector<int64_t> needs{};
};

struct ScalableResource {
  std::string name;  // "cpu cores", "gpu memory"
  int64_t total = 0;
};

struct ScalingProblem {
  static constexpr int64_t kInstancesMax = 1'000'000;  // of one variant

  std::vector<ScalableVariant> variants;
  std::vector<ScalableResource> resources{};
  double load = 0;  // queries per second, slack included
  Duration slo = Duration::max();
  double lambda = 0.1;  // per second: how much the time of LOADs counts; larger where load is unpredictable
};

// d, by position in ScalingProblem::variants.
using ScalingDeltas = std::vector<int64_t>;

// Why the problem is not one: kInvalidArgument naming the variant and the value.
Status check_problem(const ScalingProblem& problem);
// What one more instance costs, LOAD included: C (1 + lambda T_load), rounded.
int64_t loading_cost(const ScalingProblem& problem, size_t variant);
// The objective.
int64_t cost_of(const ScalingProblem& problem, const ScalingDeltas& deltas);
// What the instances cost per second once all is loaded and unloaded.
MicroDollarsPerSecond running_cost(const ScalingProblem& problem, const ScalingDeltas& deltas);
// Queries per second that they can take then.
double capacity_of(const ScalingProblem& problem, const ScalingDeltas& deltas);
// Whether (1) to (4) hold; kInternal naming the first that does not.
Status check_deltas(const ScalingProblem& problem, const ScalingDeltas& deltas);

}  // namespace foliot

#endif  // FOLIOT_CONTROL_FLEET_SCALERS_SCALING_PROBLEM_H_
