// TuningComparison: one pipeline under one trace with several plans and tuners. A plan is made
// for the first pieces of the trace; the rest is served. Each system is a row of the table
// "results" and, by minutes, rows of "series".
#ifndef FOLIOT_VIRTUAL_EXPERIMENTS_TUNING_COMPARISON_H_
#define FOLIOT_VIRTUAL_EXPERIMENTS_TUNING_COMPARISON_H_

#include <string>
#include <string_view>

#include "foundation/base/status.h"
#include "planning/pipelines/coarse_grained.h"
#include "planning/pipelines/estimator.h"
#include "planning/pipelines/planned_pipeline.h"
#include "planning/pipelines/query_trace.h"
#include "planning/pipelines/tuned_run.h"
#include "planning/pipelines/tuner.h"
#include "virtual/experiments/experiment.h"
#include "virtual/experiments/inferline_traces.h"

namespace foliot {

class TuningComparison {
 public:
  // All outlive it. `confidence`: of the plan (planning/pipelines/confident_plan.h). Errors: those of plan_pipeline()
  // and with_confidence().
  static Result<TuningComparison> make(ExperimentRun& run, const PlannedPipeline& pipeline, const TunedTrace& trace,
                                       LatencyGoal goal, double confidence = 0);

  const PlannedPipeline& pipeline() const { return *pipeline_; }
  const QueryTrace& sample() const { return sample_; }
  const QueryTrace& live() const { return live_; }
  const Configuration& plan() const { return plan_; }  // of `sample`
  LatencyGoal goal() const { return goal_; }

  void add_fixed(const std::string& system, const Configuration& configuration, const TunedRunOptions& options = {});
  void add_tuned(const std::string& system, const Configuration& from, ReplicaTuner& tuner,
                 const TunedRunOptions& options = {});
  // CG-Mean or CG-Peak, tuned by AutoScale, or as planned. Errors: those of plan_coarse_grained().
  Status add_coarse(const std::string& system, CoarseGrainedRate rate, CoarseGrainedUnit unit,
                    const TunedRunOptions& options = {});
  Status add_coarse_fixed(const std::string& system, CoarseGrainedRate rate, CoarseGrainedUnit unit);

  // "SYSTEM 99.83 % for 1.86 dollars".
  std::string text(const std::string& system, LateQueries late = LateQueries::kServed) const;
  double value(const std::string& system, const char* column, LateQueries late = LateQueries::kServed) const;

 private:
  TuningComparison(ExperimentRun& run, const PlannedPipeline& pipeline, const TunedTrace& trace, LatencyGoal goal)
      : run_(&run), pipeline_(&pipeline), trace_(&trace), goal_(goal) {}
  void add(const std::string& system, LateQueries late, const TunedRun& tuned);

  ExperimentRun* run_;
  const PlannedPipeline* pipeline_;
  const TunedTrace* trace_;
  LatencyGoal goal_;
  QueryTrace sample_;
  QueryTrace live_;
  Configuration plan_;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_EXPERIMENTS_TUNING_COMPARISON_H_
