#include "control/fleet/solvers/cbc_solver.h"

#include <coin/Cbc_C_Interface.h>
#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <memory>
#include <vector>

#include "control/fleet/solvers/integer_program.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

struct DeleteModel {
  void operator()(void* model) const { Cbc_deleteModel(model); }
};

// CBC's infinity.
double bounded(double value) { return std::clamp(value, -DBL_MAX, DBL_MAX); }

}  // namespace

Result<ScalingPlan> CbcSolver::solve(const ScalingProblem& problem, Duration limit) {
  FOLIOT_RETURN_IF_ERROR(check_problem(problem));
  const IntegerProgram program = integer_program_of(problem);
  const std::unique_ptr<void, DeleteModel> owned(Cbc_newModel());
  Cbc_Model* model = owned.get();
  Cbc_setParameter(model, "logLevel", "0");
  Cbc_setParameter(model, "slogLevel", "0");
  // With its preprocessing and heuristics together, CBC 2.10.8 calls some answers optimal that
  // are not (decision 0139).
  Cbc_setParameter(model, "preprocess", "off");
  Cbc_setParameter(model, "ratioGap", "0");
  Cbc_setParameter(model, "allowableGap", "0.999");  // costs are integers
  Cbc_setParameter(model, "timeMode", "elapsed");
  const double seconds = std::max(limit, Duration::milliseconds(1)).to_seconds();
  Cbc_setParameter(model, "seconds", fmt::format("{}", seconds).c_str());
  for (const IntegerProgram::Column& column : program.columns) {
    Cbc_addCol(model, "", 0, static_cast<double>(column.most), static_cast<double>(column.cost), 1, 0, nullptr,
               nullptr);
  }
  for (const IntegerProgram::Row& row : program.rows) {
    std::vector<int> columns;
    std::vector<double> factors;
    for (const IntegerProgram::Term& term : row.terms) {
      columns.push_back(static_cast<int>(term.column));
      factors.push_back(term.factor);
    }
    const bool least = std::isfinite(row.least);
    Cbc_addRow(model, "", static_cast<int>(columns.size()), columns.data(), factors.data(), least ? 'G' : 'L',
               bounded(least ? row.least : row.most));
  }
  const TimePoint begin = monotonic_now();
  Cbc_solve(model);
  // CBC calls "infeasible" also what it had no time for.
  const bool in_time = (monotonic_now() - begin).to_seconds() < seconds;
  if (in_time && Cbc_isProvenInfeasible(model)) return infeasible(problem);
  const double* solution = Cbc_bestSolution(model);
  if (solution == nullptr) {
    return Status::unavailable(fmt::format("CBC found nothing in {} s (status {})", seconds, Cbc_status(model)));
  }
  return plan_of(problem, program, std::vector<double>(solution, solution + program.columns.size()),
                 Cbc_isProvenOptimal(model) != 0);
}

}  // namespace foliot
