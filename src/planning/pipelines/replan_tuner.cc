#include "planning/pipelines/replan_tuner.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace foliot {
namespace {

// Share of the throughput of full batches that replicas take for certain: late queries leave no full batches.
constexpr double kTakenMost = 0.9;
// That a surge uses at most once they have risen, so that what has queued is worked off.
constexpr double kUsedMost = 0.8;

}  // namespace

ReplanTuner::ReplanTuner(PlannedPipeline pipeline, const Configuration& planned, LatencyGoal goal,
                         const ReplanOptions& options)
    : pipeline_(std::move(pipeline)),
      goal_(goal),
      options_(options),
      replayed_most_(options.replayed_most),
      configuration_(planned) {
  for (const StageConfiguration& stage : planned.stages) replicas_.push_back(stage.replicas);
}

ReplanTuner::ReplanTuner(const TuningPlan& plan, std::span<const StageEdges> edges, const ReplanOptions& options)
    : ReplanTuner(estimate_pipeline(plan, edges), estimate_configuration(plan), plan.goal, options) {
  watch_.emplace(plan.envelope, plan.rate, options.arrivals_most);
  planned_replicas_ = replicas_;
}

bool ReplanTuner::arrive(TimePoint now) {
  arrivals_.add(now.nanoseconds(), pipeline_, random_);
  if (watch_) {
    const std::optional<ArrivalWatch::Surge> surge = watch_->arrive(now);
    return surge && rise_to(*surge, now);
  }
  return !options_.in_service && tick(now);
}

bool ReplanTuner::tick(TimePoint now) {
  if (options_.in_service && !std::exchange(began_, true)) changed_ = replanned_ = begin_ = now;
  if (now - replanned_ < options_.interval) return false;
  replanned_ = now;
  forget_arrivals(now);
  Duration seen = std::min(options_.window, now - begin_);
  if (arrivals_.size() == options_.arrivals_most)
    seen = now - TimePoint::from_nanoseconds(arrivals_.arrivals_ns.front());
  if (watch_ && watch_->as_planned(now, static_cast<double>(arrivals_.size()), seen)) return go_to_plan(now);
  return replan(now);
}

void ReplanTuner::forget_arrivals(TimePoint now) {
  const Duration end = Duration::nanoseconds(now.nanoseconds() + 1);
  arrivals_ = arrivals_.between(end - options_.window, end);
  if (arrivals_.size() > options_.arrivals_most) arrivals_ = arrivals_.last(options_.arrivals_most);
}

// At once, where the replicas cannot take what certainly comes: a look a second later finds a queue that is to be
// worked off, too.
bool ReplanTuner::rise_to(const ArrivalWatch::Surge& surge, TimePoint now) {
  bool enough = true;
  for (size_t i = 0; i < replicas_.size(); ++i)
    enough = enough && least_replicas(i, surge.certain / kTakenMost) <= replicas_[i];
  if (enough) return false;
  bool changed = false;
  for (size_t i = 0; i < replicas_.size(); ++i) {
    const uint32_t least = least_replicas(i, surge.likely / kUsedMost);
    if (least <= replicas_[i]) continue;
    replicas_[i] = configuration_.stages[i].replicas = least;
    changed = true;
  }
  if (changed) changed_ = now;
  return changed;
}

// The plan is for more of such arrivals than those of the last minute, so it is neither trimmed nor extended by these.
bool ReplanTuner::go_to_plan(TimePoint now) {
  bool changed = false;
  for (size_t i = 0; i < replicas_.size(); ++i) {
    const bool falls = planned_replicas_[i] < replicas_[i];
    if (planned_replicas_[i] == replicas_[i] || (falls && now - changed_ < options_.stable_for)) continue;
    replicas_[i] = configuration_.stages[i].replicas = planned_replicas_[i];
    changed = true;
  }
  if (changed) changed_ = now;
  return changed;
}

bool ReplanTuner::replan(TimePoint now) {
  replayed_ = 0;
  const Duration end = Duration::nanoseconds(now.nanoseconds() + 1);
  const QueryTrace recent = arrivals_.between(end - options_.recent, end);
  Estimator last_window(pipeline_, arrivals_, goal_);
  Estimator last_moment(pipeline_, recent, goal_);
  const double rate = static_cast<double>(recent.size()) / options_.recent.to_seconds();
  for (size_t i = 0; i < replicas_.size(); ++i) {
    uint32_t& replicas = configuration_.stages[i].replicas;
    replicas = std::max(replicas, least_replicas(i, rate));
  }
  add_replicas(last_window);
  add_replicas(last_moment);
  bool changed = false;
  for (size_t i = 0; i < replicas_.size(); ++i) changed |= configuration_.stages[i].replicas > replicas_[i];
  if (!changed && now - changed_ >= options_.stable_for) changed = remove_replicas(last_window, last_moment, rate);
  if (!changed) return false;
  changed_ = now;
  for (size_t i = 0; i < replicas_.size(); ++i) replicas_[i] = configuration_.stages[i].replicas;
  return true;
}

bool ReplanTuner::feasible(Estimator& estimator, const Configuration& configuration) {
  count(estimator);
  return estimator.feasible(configuration);
}

uint64_t ReplanTuner::missed(Estimator& estimator, const Configuration& configuration) {
  count(estimator);
  return estimator.missed(configuration);
}

uint32_t ReplanTuner::least_replicas(size_t stage, double rate) const {
  if (!options_.in_service) return 1;
  StageConfiguration one = configuration_.stages[stage];
  one.replicas = 1;
  const double needed = std::ceil(rate / throughput(pipeline_.stages[stage], one));
  return static_cast<uint32_t>(std::clamp(needed, 1.0, static_cast<double>(options_.replicas_most)));
}

// Where they leave the fewest queries late; where one replica alone changes nothing, everywhere.
void ReplanTuner::add_replicas(Estimator& estimator) {
  while (!exhausted() && !feasible(estimator, configuration_)) {
    const uint64_t before = missed(estimator, configuration_);
    uint64_t fewest = before;
    Configuration best = configuration_;
    bool possible = false;
    for (size_t i = 0; i < replicas_.size(); ++i) {
      Configuration more = configuration_;
      if (++more.stages[i].replicas > options_.replicas_most) continue;
      possible = true;
      const uint64_t late = missed(estimator, more);
      if (late >= fewest) continue;
      fewest = late;
      best = more;
    }
    if (!possible) return;
    if (fewest == before) {
      for (StageConfiguration& stage : best.stages) {
        stage.replicas = std::min(stage.replicas + 1, options_.replicas_most);
      }
      if (best == configuration_) return;
    }
    configuration_ = best;
  }
}

// The dearest first, as many as can go.
bool ReplanTuner::remove_replicas(Estimator& last_window, Estimator& last_moment, double rate) {
  std::vector<size_t> order(replicas_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto price = [&](size_t i) { return kind_of(pipeline_.stages[i], configuration_.stages[i]).price; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return price(a) > price(b); });
  bool changed = false;
  for (const size_t i : order) {
    const uint32_t least = least_replicas(i, rate);
    Configuration fewer = configuration_;
    while (!exhausted() && --fewer.stages[i].replicas >= least && feasible(last_window, fewer) &&
           feasible(last_moment, fewer)) {
      configuration_ = fewer;
      changed = true;
    }
  }
  return changed;
}

}  // namespace foliot
