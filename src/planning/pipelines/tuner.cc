#include "planning/pipelines/tuner.h"

#include <algorithm>
#include <cmath>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// Of what rounding leaves above a whole number.
constexpr double kTolerance = 1e-9;

}  // namespace

Tuner::Tuner(const PlannedPipeline& pipeline, const Configuration& planned, const QueryTrace& trace,
             const TunerOptions& options)
    : Tuner(tuning_plan(pipeline, planned, trace), options) {}

Tuner::Tuner(const TuningPlan& plan, const TunerOptions& options)
    : options_(options),
      planned_(plan.envelope),
      windows_(planned_.windows, options.arrivals_most),
      planned_rate_(plan.rate) {
  FOLIOT_CHECK(plan.rate > 0 && !plan.stages.empty());
  for (const TuningPlan::Stage& stage : plan.stages) {
    const double share = options.rho_as_printed ? 1 : stage.scale_factor;
    demand_.push_back(stage.scale_factor / stage.throughput);
    rho_.push_back(plan.rate * share / (stage.throughput * stage.replicas));
    replicas_.push_back(stage.replicas);
  }
  planned_replicas_ = replicas_;
  if (options.knows_capacity && plan.can_estimate()) {
    Duration left = plan.goal.slo;
    for (const TuningPlan::Stage& stage : plan.stages) left -= stage.durations.back();
    if (left > Duration()) wait_ = left.to_seconds() / static_cast<double>(plan.stages.size());
  }
  down_rho_ = rho_;
  if (options.down_by_least_rho) down_rho_.assign(rho_.size(), *std::min_element(rho_.begin(), rho_.end()));
}

bool Tuner::arrive(TimePoint now) {
  count_until(now);
  ++down_counts_.back();
  windows_.add(now);
  const double above = rate_above_plan();
  if (above <= 0 && !options_.rises_to_plan) return false;
  const double rate = above > 0 ? above : busiest_rate();
  bool changed = false;
  for (uint32_t i = 0; i < replicas_.size(); ++i) {
    uint32_t wanted = std::min(needed(i, rate, rho_[i]), enough(i));
    if (above <= 0) wanted = std::min(wanted, planned_replicas_[i]);
    if (wanted <= replicas_[i]) continue;
    replicas_[i] = wanted;
    changed = true;
  }
  if (changed) changed_ = now;
  return changed;
}

double Tuner::rate_above_plan() const {
  double rate = 0;
  for (size_t i = 0; i < planned_.most.size(); ++i) {
    const uint32_t count = windows_.counts()[i];
    const uint32_t planned = planned_.most[i];
    if (count <= planned) continue;
    rate = std::max(
        rate, options_.rates_as_printed ? count / planned_.windows[i].to_seconds() : planned_rate_ * count / planned);
  }
  return rate;
}

bool Tuner::tick(TimePoint now) {
  count_until(now);
  if (now - changed_ < options_.stable_for || down_counts_.size() <= options_.down_windows) return false;
  const double rate = busiest_rate();
  bool changed = false;
  for (uint32_t i = 0; i < replicas_.size(); ++i) {
    const uint32_t wanted = std::min(needed(i, rate, down_rho_[i]), enough(i));
    if (wanted >= replicas_[i]) continue;
    replicas_[i] = wanted;
    changed = true;
  }
  if (changed) changed_ = now;
  return changed;
}

// Begins a new window of down_window for each that has passed.
void Tuner::count_until(TimePoint now) {
  const int64_t index = now.nanoseconds() / options_.down_window.nanoseconds();
  const int64_t passed = down_counts_.empty() ? 1 : index - down_index_;
  for (int64_t i = 0; i < std::min<int64_t>(passed, options_.down_windows + 1); ++i) {
    down_counts_.push_back(0);
    if (down_counts_.size() > options_.down_windows + 1) down_counts_.pop_front();
  }
  down_index_ = index;
}

uint32_t Tuner::needed(uint32_t stage, double rate, double rho) const {
  if (rho <= 0) return 1;
  const double replicas = std::ceil(rate * demand_[stage] / rho - kTolerance);
  return static_cast<uint32_t>(std::clamp(replicas, 1.0, static_cast<double>(options_.replicas_most)));
}

// A query waits for max(A(D) / R - D) over all windows D, where A(D) are the arrivals in the last D and R is what the
// stage takes in a second (Cruz, 1991). A(D) is at most the count of the next longer window. The waits of earlier
// stages may bring arrivals together that were so much further apart.
uint32_t Tuner::enough(uint32_t stage) const {
  if (!wait_) return options_.replicas_most;
  double rate = 0;
  double shorter = 0;
  for (size_t i = 0; i < planned_.windows.size(); ++i) {
    rate = std::max(rate, windows_.counts()[i] / (std::max(shorter - stage * *wait_, 0.0) + *wait_));
    shorter = planned_.windows[i].to_seconds();
  }
  const double replicas = std::ceil(rate * demand_[stage] - kTolerance);
  const auto most = static_cast<double>(options_.replicas_most);
  return std::max(planned_replicas_[stage], static_cast<uint32_t>(std::clamp(replicas, 1.0, most)));
}

double Tuner::busiest_rate() const {
  return *std::max_element(down_counts_.begin(), down_counts_.end()) / options_.down_window.to_seconds();
}

}  // namespace foliot
