#include "control/fleet/scalers/scaling_problem.h"

#include <fmt/format.h>

#include <cmath>

namespace foliot {
namespace {

// Rates are floating-point numbers: a billionth less is enough.
constexpr double kRateTolerance = 1e-9;

}  // namespace

Status check_problem(const ScalingProblem& problem) {
  if (!(problem.load >= 0) || !std::isfinite(problem.load)) {
    return Status::invalid_argument(
        fmt::format("the load is {} queries per second, and must not be negative", problem.load));
  }
  if (!(problem.lambda >= 0) || !std::isfinite(problem.lambda)) {
    return Status::invalid_argument(fmt::format("lambda is {}, and must not be negative", problem.lambda));
  }
  for (const ScalableVariant& variant : problem.variants) {
    const auto wrong = [&](const char* what, auto value, const char* limit) {
      return Status::invalid_argument(
          fmt::format("variant '{}': {} is {}, and must {}", variant.name, what, value, limit));
    };
    if (!(variant.saturation > 0) || !std::isfinite(variant.saturation)) {
      return wrong("saturation", variant.saturation, "be above 0");
    }
    if (variant.price < 0) return wrong("price", variant.price, "not be negative");
    if (variant.running < 0) return wrong("the number of instances", variant.running, "not be negative");
    if (variant.load < Duration()) return wrong("LOAD", variant.load.to_seconds(), "not be negative");
    if (variant.needs.size() > problem.resources.size()) {
      return wrong("the number of resources", variant.needs.size(), "not be above that of the problem");
    }
    for (const int64_t need : variant.needs) {
      if (need < 0) return wrong("a resource that it needs", need, "not be negative");
    }
  }
  return Status();
}

int64_t loading_cost(const ScalingProblem& problem, size_t variant) {
  const ScalableVariant& facts = problem.variants[variant];
  return std::llround(static_cast<double>(facts.price) * (1 + problem.lambda * facts.load.to_seconds()));
}

int64_t cost_of(const ScalingProblem& problem, const ScalingDeltas& deltas) {
  int64_t cost = 0;
  for (size_t i = 0; i < deltas.size(); ++i) {
    cost += deltas[i] * (deltas[i] > 0 ? loading_cost(problem, i) : problem.variants[i].price);
  }
  return cost;
}

MicroDollarsPerSecond running_cost(const ScalingProblem& problem, const ScalingDeltas& deltas) {
  MicroDollarsPerSecond cost = 0;
  for (size_t i = 0; i < deltas.size(); ++i) {
    cost += (problem.variants[i].running + deltas[i]) * problem.variants[i].price;
  }
  return cost;
}

double capacity_of(const ScalingProblem& problem, const ScalingDeltas& deltas) {
  double capacity = 0;
  for (size_t i = 0; i < deltas.size(); ++i) {
    capacity += problem.variants[i].saturation * static_cast<double>(problem.variants[i].running + deltas[i]);
  }
  return capacity;
}

Status check_deltas(const ScalingProblem& problem, const ScalingDeltas& deltas) {
  if (deltas.size() != problem.variants.size()) {
    return Status::internal(fmt::format("{} actions for {} variants", deltas.size(), problem.variants.size()));
  }
  const double capacity = capacity_of(problem, deltas);
  if (capacity < problem.load * (1 - kRateTolerance)) {
    return Status::internal(fmt::format("{} queries per second can be taken of {}", capacity, problem.load));
  }
  std::vector<int64_t> used(problem.resources.size(), 0);
  for (size_t i = 0; i < deltas.size(); ++i) {
    const ScalableVariant& variant = problem.variants[i];
    if (deltas[i] > 0 && variant.latency > problem.slo) {
      return Status::internal(fmt::format("variant '{}' takes longer than the SLO", variant.name));
    }
    if (variant.running + deltas[i] < 0) {
      return Status::internal(fmt::format("variant '{}' has a negative number of instances", variant.name));
    }
    for (size_t r = 0; r < variant.needs.size(); ++r) used[r] += variant.needs[r] * (variant.running + deltas[i]);
  }
  for (size_t r = 0; r < used.size(); ++r) {
    if (used[r] > problem.resources[r].total) {
      return Status::internal(fmt::format("{} of resource '{}' are needed, and there are {}", used[r],
                                          problem.resources[r].name, problem.resources[r].total));
    }
  }
  return Status();
}

}  // namespace foliot
