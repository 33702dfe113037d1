// HighsSolver: a ScalingProblem as an integer program for HiGHS, in a child process per call:
// Debian 12 has no HiGHS, and PyPI has it as a module of Python (highspy).
//
// The program goes to the child as one JSON object, its answer comes back as one
// (python/foliot_tools/highs.py). A child that is absent, killed or late is kUnavailable;
// late ones are killed.
//
// Threading: one call at a time; not the controller's thread.
#ifndef FOLIOT_CONTROL_FLEET_SOLVERS_HIGHS_SOLVER_H_
#define FOLIOT_CONTROL_FLEET_SOLVERS_HIGHS_SOLVER_H_

#include <string>
#include <utility>
#include <vector>

#include "control/fleet/scalers/solver.h"

namespace foliot {

struct HighsOptions {
  // A Python with highspy, and the module: {".venv/bin/python", "-m", "foliot_tools.highs"}.
  std::vector<std::string> command;
  std::vector<std::string> environment{};
  // Beyond the limit, for Python to start and to import the module.
  Duration start_most = Duration::seconds(5);
};

class HighsSolver : public Solver {
 public:
  explicit HighsSolver(HighsOptions options) : options_(std::move(options)) {}
  // `limit`: of HiGHS itself.
  Result<ScalingPlan> solve(const ScalingProblem& problem, Duration limit) override;
  // Of the last answer: what HiGHS took, without starting Python.
  Duration solving() const { return solving_; }

 private:
  const HighsOptions options_;
  Duration solving_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_FLEET_SOLVERS_HIGHS_SOLVER_H_
