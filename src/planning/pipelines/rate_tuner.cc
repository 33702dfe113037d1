#include "planning/pipelines/rate_tuner.h"

#include <algorithm>
#include <cmath>

#include "planning/pipelines/planner.h"

namespace foliot {
namespace {

uint32_t replicas_for(double rate, double demand) {
  const double replicas = std::ceil(rate * demand - 1e-9);
  return static_cast<uint32_t>(std::clamp(replicas, 1.0, static_cast<double>(kPlannedReplicasMax)));
}

double demand_of(const PlannedStage& stage, const StageConfiguration& configuration) {
  return stage.scale_factor / kind_of(stage, configuration).throughput(configuration.batch);
}

}  // namespace

RateTuner::RateTuner(const PlannedPipeline& pipeline, const Configuration& configuration,
                     const RateTunerOptions& options)
    : options_(options) {
  for (size_t i = 0; i < pipeline.stages.size(); ++i) {
    demand_.push_back(demand_of(pipeline.stages[i], configuration.stages[i]));
    replicas_.push_back(configuration.stages[i].replicas);
  }
  // What there is at the beginning is needed until it was not for `wait`.
  double rate = 0;
  for (size_t i = 0; i < demand_.size(); ++i) {
    if (demand_[i] > 0) rate = std::max(rate, replicas_[i] / demand_[i]);
  }
  rates_.emplace_back(TimePoint(), rate);
}

bool RateTuner::arrive(TimePoint) {
  ++arrivals_;
  return false;
}

bool RateTuner::tick(TimePoint now) {
  if (now - begun_ < options_.interval) return false;
  const double rate = static_cast<double>(arrivals_) / (now - begun_).to_seconds();
  arrivals_ = 0;
  begun_ = now;
  while (!rates_.empty() && rates_.front().first <= now - options_.wait) rates_.pop_front();
  while (!rates_.empty() && rates_.back().second <= rate) rates_.pop_back();
  rates_.emplace_back(now, rate);
  bool changed = false;
  for (size_t i = 0; i < replicas_.size(); ++i) {
    const uint32_t least = replicas_for(rate, demand_[i]);
    const uint32_t most = std::max(least, replicas_for(rates_.front().second, demand_[i]));
    const uint32_t wanted = std::clamp(replicas_[i], least, most);
    changed |= wanted != replicas_[i];
    replicas_[i] = wanted;
  }
  return changed;
}

Configuration plan_for_mean(const PlannedPipeline& pipeline, double rate) {
  Configuration configuration = fastest_configuration(pipeline);
  for (size_t i = 0; i < pipeline.stages.size(); ++i) {
    StageConfiguration& stage = configuration.stages[i];
    stage.replicas = replicas_for(rate, demand_of(pipeline.stages[i], stage));
  }
  return configuration;
}

}  // namespace foliot
