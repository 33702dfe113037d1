#include "planning/replan_tuner.h"

#include <algorithm>

namespace foliot {

ReplanTuner::ReplanTuner(const PlannedPipeline& pipeline, const Configuration& planned, LatencyGoal goal,
                         const ReplanOptions& options)
    : pipeline_(pipeline), goal_(goal), options_(options), configuration_(planned) {
  for (const StageConfiguration& stage : planned.stages) replicas_.push_back(stage.replicas);
}

bool ReplanTuner::arrive(TimePoint now) {
  arrivals_.arrivals_ns.push_back(now.nanoseconds());
  arrivals_.visits.push_back(pipeline_.draw_visits(random_));
  return tick(now);
}

bool ReplanTuner::tick(TimePoint now) {
  if (now - replanned_ < options_.interval) return false;
  replanned_ = now;
  return replan(now);
}

bool ReplanTuner::replan(TimePoint now) {
  const Duration end = Duration::nanoseconds(now.nanoseconds() + 1);
  arrivals_ = arrivals_.between(end - options_.window, end);
  if (arrivals_.size() > options_.arrivals_most) arrivals_ = arrivals_.last(options_.arrivals_most);
  const QueryTrace recent = arrivals_.between(end - options_.recent, end);
  Estimator last_window(pipeline_, arrivals_, goal_);
  Estimator last_moment(pipeline_, recent, goal_);
  add_replicas(last_window);
  add_replicas(last_moment);
  bool changed = false;
  for (size_t i = 0; i < replicas_.size(); ++i) changed |= configuration_.stages[i].replicas > replicas_[i];
  if (!changed && now - changed_ >= options_.stable_for) changed = remove_replicas(last_window, last_moment);
  if (!changed) return false;
  changed_ = now;
  for (size_t i = 0; i < replicas_.size(); ++i) replicas_[i] = configuration_.stages[i].replicas;
  return true;
}

// Where they leave the fewest queries late; where one replica alone changes nothing, everywhere.
void ReplanTuner::add_replicas(Estimator& estimator) {
  while (!estimator.feasible(configuration_)) {
    const uint64_t before = estimator.missed(configuration_);
    uint64_t fewest = before;
    Configuration best = configuration_;
    bool possible = false;
    for (size_t i = 0; i < replicas_.size(); ++i) {
      Configuration more = configuration_;
      if (++more.stages[i].replicas > options_.replicas_most) continue;
      possible = true;
      const uint64_t missed = estimator.missed(more);
      if (missed >= fewest) continue;
      fewest = missed;
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
bool ReplanTuner::remove_replicas(Estimator& last_window, Estimator& last_moment) {
  std::vector<size_t> order(replicas_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto price = [&](size_t i) { return kind_of(pipeline_.stages[i], configuration_.stages[i]).price; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return price(a) > price(b); });
  bool changed = false;
  for (const size_t i : order) {
    Configuration fewer = configuration_;
    while (--fewer.stages[i].replicas > 0 && last_window.feasible(fewer) && last_moment.feasible(fewer)) {
      configuration_ = fewer;
      changed = true;
    }
  }
  return changed;
}

}  // namespace foliot
