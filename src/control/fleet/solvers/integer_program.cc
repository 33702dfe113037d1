#include "control/fleet/solvers/integer_program.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace foliot {

IntegerProgram integer_program_of(const ScalingProblem& problem) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  IntegerProgram program;
  program.rows.resize(1 + problem.resources.size());
  program.rows[0] = {.terms = {}, .least = problem.load, .most = kInfinite};
  for (size_t r = 0; r < problem.resources.size(); ++r) {
    program.rows[1 + r] = {.terms = {}, .least = -kInfinite, .most = static_cast<double>(problem.resources[r].total)};
  }
  const auto add = [&](size_t variant, int64_t sign, int64_t cost, int64_t most) {
    const size_t column = program.columns.size();
    const ScalableVariant& facts = problem.variants[variant];
    program.columns.push_back({variant, sign, cost, most});
    program.rows[0].terms.push_back({column, facts.saturation * static_cast<double>(sign)});
    for (size_t r = 0; r < facts.needs.size(); ++r) {
      if (facts.needs[r] != 0)
        program.rows[1 + r].terms.push_back({column, static_cast<double>(facts.needs[r] * sign)});
    }
  };
  for (size_t i = 0; i < problem.variants.size(); ++i) {
    const ScalableVariant& variant = problem.variants[i];
    const auto running = static_cast<double>(variant.running);
    program.rows[0].least -= variant.saturation * running;
    for (size_t r = 0; r < variant.needs.size(); ++r) {
      program.rows[1 + r].most -= static_cast<double>(variant.needs[r]) * running;
    }
    if (variant.latency <= problem.slo) {
      // More than take the load alone are never worth their cost.
      const double enough = std::ceil(problem.load / variant.saturation);
      add(i, 1, loading_cost(problem, i),
          static_cast<int64_t>(std::min(enough, static_cast<double>(ScalingProblem::kInstancesMax))));
    }
    if (variant.running > 0) add(i, -1, -variant.price, variant.running);
  }
  return program;
}

Result<ScalingPlan> plan_of(const ScalingProblem& problem, const IntegerProgram& program,
                            const std::vector<double>& values, bool optimal) {
  if (values.size() != program.columns.size()) {
    return Status::unavailable(
        fmt::format("the solver gave {} values for {} columns", values.size(), program.columns.size()));
  }
  ScalingPlan plan{.deltas = ScalingDeltas(problem.variants.size(), 0), .optimal = optimal};
  for (size_t i = 0; i < values.size(); ++i) {
    if (!(std::abs(values[i]) < 1e15)) return Status::unavailable("the solver gave a value that is not a number");
    plan.deltas[program.columns[i].variant] += program.columns[i].sign * std::llround(values[i]);
  }
  if (const Status kept = check_deltas(problem, plan.deltas); !kept.ok()) {
    return Status::unavailable("the solver's answer breaks a constraint: " + kept.message());
  }
  plan.cost = cost_of(problem, plan.deltas);
  return plan;
}

Status infeasible(const ScalingProblem& problem) {
  return Status::resource_exhausted(fmt::format(
      "no instances within the SLO and the resources take {} queries per second; add devices", problem.load));
}

}  // namespace foliot
