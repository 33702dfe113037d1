// Greedy rules for a ScalingProblem: microseconds to milliseconds, and close to the least cost.
//
// GreedySolver is the paper's section 4.2.2. Scaling up: as many more instances of one running
// variant as the load needs (replicate), or as many of another variant of a running
// architecture with a higher throughput (upgrade), beside what runs or in its place,
// whichever costs least. Scaling down: instances of one variant fewer, or another variant in
// place of all (downgrade). Where nothing runs, one variant, of any architecture.
//
// GreedyMixedSolver fills the load with one variant, as often as it fits, and the best one
// for the remainder; what runs is kept in part or whole: its cheapest rates first. Of what
// it then has too much, it unloads what is most expensive.
//
// Neither reads the limit of time. Threading: none; they keep no state.
#ifndef FOLIOT_CONTROL_FLEET_SCALERS_GREEDY_H_
#define FOLIOT_CONTROL_FLEET_SCALERS_GREEDY_H_

#include "control/fleet/scalers/solver.h"

namespace foliot {

class GreedySolver : public Solver {
 public:
  Result<ScalingPlan> solve(const ScalingProblem& problem, Duration limit) override;
};

class GreedyMixedSolver : public Solver {
 public:
  Result<ScalingPlan> solve(const ScalingProblem& problem, Duration limit) override;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_FLEET_SCALERS_GREEDY_H_
