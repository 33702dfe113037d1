// CbcSolver: a ScalingProblem as an integer program for CBC, which is linked.
//
// Threading: one call at a time; not the controller's thread, since it takes milliseconds or
// longer.
#ifndef FOLIOT_CONTROL_FLEET_SOLVERS_CBC_SOLVER_H_
#define FOLIOT_CONTROL_FLEET_SOLVERS_CBC_SOLVER_H_

#include "control/fleet/scalers/solver.h"

namespace foliot {

class CbcSolver : public Solver {
 public:
  // `limit`: CBC's own, by its clock; at least 1 ms.
  Result<ScalingPlan> solve(const ScalingProblem& problem, Duration limit) override;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_FLEET_SOLVERS_CBC_SOLVER_H_
