// Tuner: keeps the replicas of each stage at what the arrivals of the moment need, between two
// runs of the planner (InferLine, section 4.5).
//
// It adds replicas at once, when in any window more queries arrive than the envelope of the
// planner's trace has: as many as r_max, the highest rate of such a window, needs. It removes
// replicas once nothing has changed for `stable_for`: down to what the busiest of the last
// `down_windows` windows of `down_window` needs. A tuner sets targets and never acts by itself.
//
// Threading: one owner. Time is an argument.
#ifndef FOLIOT_PLANNING_PIPELINES_TUNER_H_
#define FOLIOT_PLANNING_PIPELINES_TUNER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "foundation/base/time.h"
#include "planning/pipelines/configuration.h"
#include "planning/pipelines/envelope.h"
#include "planning/pipelines/planned_pipeline.h"
#include "planning/pipelines/query_trace.h"
#include "planning/pipelines/tuning_plan.h"

namespace foliot {

struct TunerOptions {
  // rho = lambda / mu, as printed. Without the scale factor s, a stage that few queries visit
  // seems to have less room than it has, and k = r s / (mu rho) gives it s times the replicas
  // that the planner gave it. By default, rho = lambda s / mu.
  bool rho_as_printed = false;
  // As printed, r_max is a rate like any other, though in a window of a few milliseconds even
  // the planned arrivals come at many times their mean rate. Else, r_max is lambda times the
  // largest ratio of a window's arrivals to those of the planned envelope.
  bool rates_as_printed = true;
  // As printed, all stages go down by the least rho of all, which keeps those with a higher one
  // above the plan for good. Else, each goes down by its own.
  bool down_by_least_rho = true;
  // As printed, replicas that went below the plan in a quiet time stay there until more comes than the envelope has,
  // though the plan's are needed for that. Else, they rise with the busiest window up to the plan's.
  bool rises_to_plan = false;
  // As printed, a stage that the plan uses little, since it has one replica at least, gets more in proportion to the
  // arrivals all the same. Else, it gets no more than what is enough for any arrivals like those of the last
  // minute to wait in time, by what a replica can take. Needs a plan with a goal and durations.
  bool knows_capacity = false;
  Duration stable_for = Duration::seconds(15);  // three times what it takes to activate a replica
  Duration down_window = Duration::seconds(5);
  uint32_t down_windows = 6;
  uint32_t replicas_most = 4096;  // of a stage
  // That are kept, for the longest window, at most.
  size_t arrivals_most = size_t{1} << 20;

  // What keeps 99 % at least cost where late queries are refused (decision 0124).
  static TunerOptions by_ratio() {
    return {.rates_as_printed = false, .down_by_least_rho = false, .rises_to_plan = true, .knows_capacity = true};
  }
};

// Replicas of the stages of a pipeline that follow the arrivals.
class ReplicaTuner {
 public:
  virtual ~ReplicaTuner() = default;
  // REQUIRES: `now` never falls. True if replicas() changed.
  virtual bool arrive(TimePoint now) = 0;
  // Called every second or so, also without arrivals. True if replicas() changed.
  virtual bool tick(TimePoint now) = 0;
  // By stages.
  virtual const std::vector<uint32_t>& replicas() const = 0;
};

class Tuner final : public ReplicaTuner {
 public:
  Tuner(const TuningPlan& plan, const TunerOptions& options);
  // Of a plan, and the trace that it was made for. REQUIRES: a trace with a rate.
  Tuner(const PlannedPipeline& pipeline, const Configuration& planned, const QueryTrace& trace,
        const TunerOptions& options);

  bool arrive(TimePoint now) override;
  bool tick(TimePoint now) override;
  const std::vector<uint32_t>& replicas() const override { return replicas_; }

  // Max-provisioning ratios, by stages.
  const std::vector<double>& rho() const { return rho_; }

 private:
  // The highest of a window in which more came than planned; 0: there is none.
  double rate_above_plan() const;
  uint32_t needed(uint32_t stage, double rate, double rho) const;
  // Replicas above the plan's that any arrivals like the last ones need at most.
  uint32_t enough(uint32_t stage) const;
  void count_until(TimePoint now);
  double busiest_rate() const;

  const TunerOptions options_;
  const Envelope planned_;
  SlidingWindows windows_;
  std::vector<double> demand_;  // by stages: s / throughput of one replica, in seconds
  std::vector<double> rho_;
  std::vector<double> down_rho_;
  // How long a query may wait for each stage, in seconds, so that all waits and full batches are within the
  // goal; nullopt: capacity is not known.
  std::optional<double> wait_;
  std::vector<uint32_t> planned_replicas_;
  const double planned_rate_;
  std::vector<uint32_t> replicas_;
  TimePoint changed_;
  // Arrivals in each of the last windows of down_window, and in the one that has begun.
  std::deque<uint32_t> down_counts_;
  int64_t down_index_ = 0;  // of the one that has begun
};

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_TUNER_H_
