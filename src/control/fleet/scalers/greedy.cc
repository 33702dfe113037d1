#include "control/fleet/scalers/greedy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace foliot {
namespace {

// How many instances of so much take `rate`.
int64_t instances_for(double rate, double saturation) {
  if (rate <= 0) return 0;
  const double count = std::ceil(rate / saturation * (1 - 1e-9));
  return static_cast<int64_t>(std::min(count, static_cast<double>(ScalingProblem::kInstancesMax)));
}

Status cannot_be_met(const ScalingProblem& problem) {
  return Status::resource_exhausted(fmt::format(
      "no instances within the SLO and the resources take {} queries per second; add devices", problem.load));
}

// What is to run, and the resources that are left.
class Fleet {
 public:
  explicit Fleet(const ScalingProblem& problem)
      : problem_(problem), counts_(problem.variants.size(), 0), missing_(problem.load) {
    for (const ScalableResource& resource : problem.resources) left_.push_back(resource.total);
  }

  double missing() const { return missing_; }
  int64_t count(size_t variant) const { return counts_[variant]; }
  // How many more of it fit.
  int64_t room(size_t variant) const {
    int64_t room = ScalingProblem::kInstancesMax - counts_[variant];
    const std::vector<int64_t>& needs = problem_.variants[variant].needs;
    for (size_t r = 0; r < needs.size(); ++r) {
      if (needs[r] > 0) room = std::min(room, std::max<int64_t>(0, left_[r] / needs[r]));
    }
    return room;
  }
  // `count` may be below 0.
  void add(size_t variant, int64_t count) {
    const ScalableVariant& facts = problem_.variants[variant];
    counts_[variant] += count;
    missing_ -= facts.saturation * static_cast<double>(count);
    for (size_t r = 0; r < facts.needs.size(); ++r) left_[r] -= facts.needs[r] * count;
  }
  // Of those that run now, as many are kept.
  bool may_load(size_t variant) const {
    return problem_.variants[variant].latency <= problem_.slo || counts_[variant] < problem_.variants[variant].running;
  }
  // Unloads what is not needed, what costs most first.
  void trim() {
    std::vector<size_t> order(counts_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater<>(), [this](size_t i) { return problem_.variants[i].price; });
    for (const size_t i : order) {
      const double spare = std::floor(-missing_ / problem_.variants[i].saturation * (1 + 1e-9));
      if (counts_[i] > 0 && spare >= 1) add(i, -std::min(counts_[i], static_cast<int64_t>(spare)));
    }
  }
  ScalingDeltas deltas() const {
    ScalingDeltas deltas;
    for (size_t i = 0; i < counts_.size(); ++i) deltas.push_back(counts_[i] - problem_.variants[i].running);
    return deltas;
  }

 private:
  const ScalingProblem& problem_;
  ScalingDeltas counts_;
  double missing_;
  std::vector<int64_t> left_;
};

// The cheapest of the candidates that keep the constraints.
class Best {
 public:
  explicit Best(const ScalingProblem& problem) : problem_(problem) {}
  void offer(const Fleet& fleet) {
    ScalingDeltas deltas = fleet.deltas();
    const int64_t cost = cost_of(problem_, deltas);
    if (best_ && best_->cost <= cost) return;
    if (check_deltas(problem_, deltas).ok()) best_ = ScalingPlan{std::move(deltas), cost};
  }
  Result<ScalingPlan> take() {
    if (!best_) return cannot_be_met(problem_);
    return std::move(*best_);
  }

 private:
  const ScalingProblem& problem_;
  std::optional<ScalingPlan> best_;
};

Fleet all_running(const ScalingProblem& problem) {
  Fleet fleet(problem);
  for (size_t i = 0; i < problem.variants.size(); ++i) fleet.add(i, problem.variants[i].running);
  return fleet;
}

// The best single variant for what is missing; false if there is none.
bool fill(const ScalingProblem& problem, Fleet& fleet) {
  if (fleet.missing() <= problem.load * 1e-9) return true;
  size_t best = problem.variants.size();
  int64_t best_count = 0;
  int64_t best_cost = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < problem.variants.size(); ++i) {
    const ScalableVariant& variant = problem.variants[i];
    const int64_t count = instances_for(fleet.missing(), variant.saturation);
    if (variant.latency > problem.slo && fleet.count(i) + count > variant.running) continue;
    const int64_t again = std::clamp<int64_t>(variant.running - fleet.count(i), 0, count);
    const int64_t cost = again * variant.price + (count - again) * loading_cost(problem, i);
    if (cost >= best_cost || fleet.room(i) < count) continue;
    best = i;
    best_count = count;
    best_cost = cost;
  }
  if (best == problem.variants.size()) return false;
  fleet.add(best, best_count);
  return true;
}

}  // namespace

Result<ScalingPlan> GreedySolver::solve(const ScalingProblem& problem, Duration) {
  FOLIOT_RETURN_IF_ERROR(check_problem(problem));
  Best best(problem);
  std::set<std::string> architectures;
  for (const ScalableVariant& variant : problem.variants) {
    if (variant.running > 0) architectures.insert(variant.architecture);
  }
  const Fleet now = all_running(problem);
  if (problem.load <= 0) best.offer(Fleet(problem));
  if (now.missing() <= 0) {
    best.offer(now);
    for (size_t i = 0; i < problem.variants.size(); ++i) {  // one variant fewer
      const ScalableVariant& variant = problem.variants[i];
      Fleet less = now;
      less.add(i, -std::min(variant.running, static_cast<int64_t>(std::floor(-now.missing() / variant.saturation))));
      best.offer(less);
    }
  }
  for (size_t i = 0; i < problem.variants.size(); ++i) {
    const ScalableVariant& variant = problem.variants[i];
    if (!architectures.empty() && !architectures.contains(variant.architecture)) continue;
    if (now.missing() > 0) {  // beside what runs
      Fleet more = now;
      more.add(i, instances_for(now.missing(), variant.saturation));
      best.offer(more);
    }
    Fleet alone(problem);  // in its place
    alone.add(i, instances_for(problem.load, variant.saturation));
    best.offer(alone);
  }
  return best.take();
}

Result<ScalingPlan> GreedyMixedSolver::solve(const ScalingProblem& problem, Duration) {
  FOLIOT_RETURN_IF_ERROR(check_problem(problem));
  Best best(problem);
  std::vector<size_t> running;
  for (size_t i = 0; i < problem.variants.size(); ++i) {
    if (problem.variants[i].running > 0) running.push_back(i);
  }
  std::ranges::stable_sort(running, {}, [&](size_t i) {
    return static_cast<double>(problem.variants[i].price) / problem.variants[i].saturation;
  });
  Fleet kept(problem);
  for (size_t keep = 0;; ++keep) {
    const auto offer = [&](Fleet fleet) {
      if (!fill(problem, fleet)) return;
      fleet.trim();
      best.offer(fleet);
    };
    offer(kept);
    for (size_t i = 0; i < problem.variants.size() && kept.missing() > 0; ++i) {
      const ScalableVariant& variant = problem.variants[i];
      if (!kept.may_load(i)) continue;
      const int64_t room =
          variant.latency <= problem.slo ? kept.room(i) : std::min(kept.room(i), variant.running - kept.count(i));
      const int64_t count = std::min(static_cast<int64_t>(std::floor(kept.missing() / variant.saturation)), room);
      if (count <= 0) continue;
      Fleet mixed = kept;
      mixed.add(i, count);
      offer(mixed);
    }
    if (keep == running.size()) break;
    kept.add(running[keep], problem.variants[running[keep]].running);
  }
  return best.take();
}

}  // namespace foliot
