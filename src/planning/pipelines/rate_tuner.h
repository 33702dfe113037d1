// RateTuner: replicas of each stage for the mean rate of the last interval, k = ceil(rate s / mu):
// what a tuner can do that knows rates and no bursts. Two baselines are of this kind:
// - AutoScale for each stage (Gandhi et al.): up every second, down once a replica was not
//   needed for `wait`;
// - DS2 (Kalavri et al., OSDI 2018), which measures the true processing rate of each operator and
//   sets the parallelism of all at once, up and down. Its job stands still meanwhile
//   (TunedRunOptions::halt).
//
// Threading: one owner. Time is an argument.
#ifndef FOLIOT_PLANNING_PIPELINES_RATE_TUNER_H_
#define FOLIOT_PLANNING_PIPELINES_RATE_TUNER_H_

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "foundation/base/time.h"
#include "planning/pipelines/configuration.h"
#include "planning/pipelines/tuner.h"

namespace foliot {

struct RateTunerOptions {
  Duration interval = Duration::seconds(1);
  Duration wait = Duration::seconds(120);  // before replicas go; 0: at the next interval

  // DS2's own policy interval is tens of seconds: it has to be longer than a reconfiguration.
  static RateTunerOptions ds2() { return {.interval = Duration::seconds(30), .wait = Duration()}; }
};

class RateTuner final : public ReplicaTuner {
 public:
  // Kinds and batch sizes stay those of `configuration`.
  RateTuner(const PlannedPipeline& pipeline, const Configuration& configuration, const RateTunerOptions& options);

  bool arrive(TimePoint now) override;
  bool tick(TimePoint now) override;
  const std::vector<uint32_t>& replicas() const override { return replicas_; }

 private:
  const RateTunerOptions options_;
  std::vector<double> demand_;  // by stages: s / throughput of one replica, in seconds
  std::vector<uint32_t> replicas_;
  uint64_t arrivals_ = 0;  // since the interval began
  TimePoint begun_;
  std::deque<std::pair<TimePoint, double>> rates_;  // of the last `wait`, falling
};

// DS2's plan: without batches, on the fastest kinds, as many replicas as the mean rate needs.
Configuration plan_for_mean(const PlannedPipeline& pipeline, double rate);

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_RATE_TUNER_H_
