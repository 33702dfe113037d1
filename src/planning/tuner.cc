#include "planning/tuner.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

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
    uint32_t wanted = needed(i, rate, rho_[i]);
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
    const uint32_t wanted = needed(i, rate, down_rho_[i]);
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

double Tuner::busiest_rate() const {
  return *std::max_element(down_counts_.begin(), down_counts_.end()) / options_.down_window.to_seconds();
}

}  // namespace foliot
