// ReplanTuner: the fewest replicas by which the estimator meets the goal on the arrivals of the
// last minute, and of the last seconds. Kinds and batch sizes stay those of the plan.
//
// Threading: one owner. Time is an argument.
#ifndef FOLIOT_PLANNING_REPLAN_TUNER_H_
#define FOLIOT_PLANNING_REPLAN_TUNER_H_

#include <vector>

#include "base/random.h"
#include "planning/estimator.h"
#include "planning/tuner.h"

namespace foliot {

struct ReplanOptions {
  Duration interval = Duration::seconds(1);     // between two looks
  Duration window = Duration::seconds(60);      // of arrivals that the estimator replays
  Duration recent = Duration::seconds(5);       // these, by themselves, are to meet the goal, too
  Duration stable_for = Duration::seconds(15);  // without a change, before replicas go
  uint32_t replicas_most = 4096;                // of a stage
  uint32_t arrivals_most = 1 << 18;             // that are kept; the oldest go first
};

class ReplanTuner final : public ReplicaTuner {
 public:
  // REQUIRES: `pipeline` outlives it.
  ReplanTuner(const PlannedPipeline& pipeline, const Configuration& planned, LatencyGoal goal,
              const ReplanOptions& options = {});

  bool arrive(TimePoint now) override;
  bool tick(TimePoint now) override;
  const std::vector<uint32_t>& replicas() const override { return replicas_; }

 private:
  bool replan(TimePoint now);
  void add_replicas(Estimator& estimator);
  bool remove_replicas(Estimator& last_window, Estimator& last_moment);

  const PlannedPipeline& pipeline_;
  const LatencyGoal goal_;
  const ReplanOptions options_;
  Random random_{18};
  QueryTrace arrivals_;
  Configuration configuration_;
  std::vector<uint32_t> replicas_;
  TimePoint replanned_;
  TimePoint changed_;
};

}  // namespace foliot

#endif  // FOLIOT_PLANNING_REPLAN_TUNER_H_
