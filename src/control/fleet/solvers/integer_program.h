// IntegerProgram: a ScalingProblem in the form that solvers take: columns, and rows with a lower
// or an upper bound.
//
// For each variant there is a column of instances that are loaded, and, where it runs, one of
// instances that are unloaded: d = loaded - unloaded. Constraint (2) is a bound of the first,
// (4) of the second.
#ifndef FOLIOT_CONTROL_FLEET_SOLVERS_INTEGER_PROGRAM_H_
#define FOLIOT_CONTROL_FLEET_SOLVERS_INTEGER_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "control/fleet/scalers/solver.h"

namespace foliot {

struct IntegerProgram {
  struct Column {
    size_t variant = 0;
    int64_t sign = 1;  // 1: loaded, -1: unloaded
    int64_t cost = 0;
    int64_t most = 0;
  };
  struct Term {
    size_t column = 0;
    double factor = 0;
  };
  struct Row {
    std::vector<Term> terms;
    double least = 0;  // one of both is infinite
    double most = 0;
  };
  std::vector<Column> columns;
  std::vector<Row> rows;
};

// REQUIRES: check_problem() is ok.
IntegerProgram integer_program_of(const ScalingProblem& problem);
// The plan that a solver's values stand for. Errors: kUnavailable if it breaks a constraint, as
// a solver's tolerances may.
Result<ScalingPlan> plan_of(const ScalingProblem& problem, const IntegerProgram& program,
                            const std::vector<double>& values, bool optimal);
Status infeasible(const ScalingProblem& problem);

}  // namespace foliot

#endif  // FOLIOT_CONTROL_FLEET_SOLVERS_INTEGER_PROGRAM_H_
