// TunedRun: what comes of a tuner that follows a trace, in virtual time: how the replicas
// change, what they cost, and the latencies.
#ifndef FOLIOT_PLANNING_PIPELINES_TUNED_RUN_H_
#define FOLIOT_PLANNING_PIPELINES_TUNED_RUN_H_

#include <optional>
#include <vector>

#include "foundation/base/time.h"
#include "planning/pipelines/estimator.h"
#include "planning/pipelines/tuner.h"

namespace foliot {

struct TunedRunOptions {
  Duration activation = Duration::seconds(5);  // from the decision to a replica that serves
  Duration tick = Duration::seconds(1);
  // Each change stops all stages for so long, and takes effect at its end, in place of
  // `activation`: as a stream processor does that saves its state and starts anew.
  std::optional<Duration> halt{};
  LateQueries late = LateQueries::kServed;
};

struct TunedRun {
  ReplicaChanges changes;
  // Of all replicas, from the decision to add them on until they are removed.
  double dollars = 0;
  std::vector<double> dollars_per_hour;  // at the beginning of each minute
  Estimate estimate;
  std::vector<double> attainment;  // by minutes of arrival; 1 where no query arrives
  std::vector<Duration> p99;       // of those that were not refused, likewise; 0 where there is none
};

// `from` has kinds, batch sizes, and the replicas at the beginning. REQUIRES: a trace that is not empty.
TunedRun run_tuned(const PlannedPipeline& pipeline, const Configuration& from, const QueryTrace& trace,
                   LatencyGoal goal, ReplicaTuner& tuner, const TunedRunOptions& options = {});

// The same without a tuner.
TunedRun run_fixed(const PlannedPipeline& pipeline, const Configuration& configuration, const QueryTrace& trace,
                   LatencyGoal goal, const TunedRunOptions& options = {});

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_TUNED_RUN_H_
