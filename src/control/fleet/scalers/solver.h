// Solver: finds the instances that a ScalingProblem asks for. Greedy rules are solvers
// (control/fleet/scalers/greedy.h), and so are those of integer programs (control/fleet/solvers).
#ifndef FOLIOT_CONTROL_FLEET_SCALERS_SOLVER_H_
#define FOLIOT_CONTROL_FLEET_SCALERS_SOLVER_H_

#include "control/fleet/scalers/scaling_problem.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct ScalingPlan {
  ScalingDeltas deltas;
  int64_t cost = 0;      // the objective
  bool optimal = false;  // proven
};

class Solver {
 public:
  virtual ~Solver() = default;
  // In at most about `limit`; what was found by then, if anything, is not optimal. Errors:
  // those of check_problem(); kResourceExhausted if (1) to (4) cannot hold together (add
  // devices); kUnavailable if the solver is absent, has ended or found nothing in time (use
  // another).
  virtual Result<ScalingPlan> solve(const ScalingProblem& problem, Duration limit) = 0;
};

// Asks `first`; where that is kUnavailable, `second`, and counts. Both outlive it.
class FallbackSolver : public Solver {
 public:
  FallbackSolver(Solver& first, Solver& second) : first_(first), second_(second) {}
  Result<ScalingPlan> solve(const ScalingProblem& problem, Duration limit) override {
    auto plan = first_.solve(problem, limit);
    if (plan.ok() || plan.status().code() != StatusCode::kUnavailable) return plan;
    ++fallbacks_;
    last_ = plan.status();
    return second_.solve(problem, limit);
  }
  uint64_t fallbacks() const { return fallbacks_; }
  const Status& last_failure() const { return last_; }

 private:
  Solver& first_;
  Solver& second_;
  uint64_t fallbacks_ = 0;
  Status last_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_FLEET_SCALERS_SOLVER_H_
