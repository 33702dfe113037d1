#include "control/fleet/scalers/model_autoscaler.h"

#include <algorithm>

namespace foliot {
namespace {

// What the instances that run can take.
double capacity_of(const ScalingProblem& problem) {
  return capacity_of(problem, ScalingDeltas(problem.variants.size(), 0));
}

}  // namespace

ModelAutoscaler::ModelAutoscaler(Solver& solver, const ModelAutoscalerOptions& options)
    : solver_(solver), options_(options) {}

ScalingStep ModelAutoscaler::step(const ScalingProblem& seen, TimePoint now) {
  if (const Status valid = check_problem(seen); !valid.ok()) return {.deltas = {}, .status = valid};
  ScalingProblem problem = without_retiring(seen);
  problem.load = seen.load * options_.headroom;
  if (capacity_of(problem) < problem.load && !retiring_.empty()) {
    retiring_.clear();
    problem.variants = seen.variants;
    problem.resources = seen.resources;
  }
  ScalingStep step = capacity_of(problem) < problem.load        ? scale_up(problem, now)
                     : options_.scale_down && retiring_.empty() ? scale_down(problem, now)
                                                                : ScalingStep();
  take_due(step.deltas, now);
  return step;
}

ScalingProblem ModelAutoscaler::without_retiring(const ScalingProblem& seen) const {
  ScalingProblem problem = seen;
  for (const Retirement& retirement : retiring_) {
    ScalableVariant& variant = problem.variants[retirement.variant];
    const int64_t count = std::min(retirement.count, variant.running);
    variant.running -= count;
    for (size_t r = 0; r < variant.needs.size(); ++r) problem.resources[r].total -= variant.needs[r] * count;
  }
  return problem;
}

ScalingStep ModelAutoscaler::scale_up(const ScalingProblem& problem, TimePoint now) {
  down_since_.reset();
  const auto plan = solver_.solve(problem, options_.solver_limit);
  if (plan.ok()) return {.deltas = begin(problem, *plan, now), .status = {}};
  ScalingStep step{.deltas = {}, .status = plan.status()};
  if (plan.status().code() != StatusCode::kResourceExhausted) return step;
  if (const auto most = most_that_fits(problem)) step.deltas = begin(problem, *most, now);
  return step;
}

std::optional<ScalingPlan> ModelAutoscaler::most_that_fits(ScalingProblem problem) {
  double taken = capacity_of(problem);
  double refused = problem.load;
  std::optional<ScalingPlan> best;
  for (int i = 0; i < 8 && refused > taken * 1.01; ++i) {
    problem.load = (taken + refused) / 2;
    auto plan = solver_.solve(problem, options_.solver_limit);
    if (plan.ok()) {
      taken = problem.load;
      best = *std::move(plan);
    } else {
      refused = problem.load;
    }
  }
  return best;
}

ScalingStep ModelAutoscaler::scale_down(const ScalingProblem& now_problem, TimePoint now) {
  ScalingProblem problem = now_problem;
  peak_ = down_since_ ? std::max(peak_, problem.load) : problem.load;
  problem.load = peak_;
  const auto plan = solver_.solve(problem, options_.solver_limit);
  if (!plan.ok() || plan->cost >= 0) {
    down_since_.reset();
    // That no device has room for what would be cheaper is no shortage.
    const bool failed = !plan.ok() && plan.status().code() != StatusCode::kResourceExhausted;
    return {.deltas = {}, .status = failed ? plan.status() : Status()};
  }
  if (!down_since_) down_since_ = now;
  Duration wait = options_.interval;
  for (size_t i = 0; i < plan->deltas.size(); ++i) {
    if (plan->deltas[i] < 0) wait = std::max(wait, problem.variants[i].load);
  }
  if (now - *down_since_ < wait) return {};
  down_since_.reset();
  return {.deltas = begin(problem, *plan, now), .status = {}};
}

ScalingDeltas ModelAutoscaler::begin(const ScalingProblem& problem, const ScalingPlan& plan, TimePoint now) {
  Duration loading;
  for (size_t i = 0; i < plan.deltas.size(); ++i) {
    if (plan.deltas[i] > 0) loading = std::max(loading, problem.variants[i].load);
  }
  ScalingDeltas deltas(plan.deltas.size(), 0);
  for (size_t i = 0; i < plan.deltas.size(); ++i) {
    if (plan.deltas[i] > 0) deltas[i] = plan.deltas[i];
    if (plan.deltas[i] < 0) retiring_.push_back({i, -plan.deltas[i], now + loading});
  }
  return deltas;
}

void ModelAutoscaler::take_due(ScalingDeltas& deltas, TimePoint now) {
  std::erase_if(retiring_, [&](const Retirement& retirement) {
    if (retirement.due > now) return false;
    if (deltas.size() <= retirement.variant) deltas.resize(retirement.variant + 1, 0);
    deltas[retirement.variant] -= retirement.count;
    return true;
  });
}

}  // namespace foliot
