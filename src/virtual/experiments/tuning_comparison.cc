#include "virtual/experiments/tuning_comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "planning/pipelines/confident_plan.h"
#include "planning/pipelines/planner.h"

namespace foliot {
namespace {

const char* text_of(LateQueries late) { return late == LateQueries::kServed ? "served" : "refused"; }

}  // namespace

Result<TuningComparison> TuningComparison::make(ExperimentRun& run, const PlannedPipeline& pipeline,
                                                const TunedTrace& trace, LatencyGoal goal, double confidence) {
  TuningComparison comparison(run, pipeline, trace, goal);
  const TraceArrivals arrivals = draw_arrivals(trace, run.size(1.0, 0.2), run.seed());
  comparison.sample_ = QueryTrace::draw(pipeline, arrivals.planned, run.seed());
  comparison.live_ = QueryTrace::draw(pipeline, arrivals.live, run.seed() + 1);
  FOLIOT_ASSIGN_OR_RETURN(PipelinePlan planned, plan_pipeline(pipeline, comparison.sample_, goal));
  if (confidence > 0) {
    FOLIOT_ASSIGN_OR_RETURN(planned, with_confidence(pipeline, comparison.sample_, goal, planned, confidence));
  }
  comparison.plan_ = planned.configuration;
  return comparison;
}

void TuningComparison::add_fixed(const std::string& system, const Configuration& configuration,
                                 const TunedRunOptions& options) {
  add(system, options.late, run_fixed(*pipeline_, configuration, live_, goal_, options));
}

void TuningComparison::add_tuned(const std::string& system, const Configuration& from, ReplicaTuner& tuner,
                                 const TunedRunOptions& options) {
  add(system, options.late, run_tuned(*pipeline_, from, live_, goal_, tuner, options));
}

Status TuningComparison::add_coarse(const std::string& system, CoarseGrainedRate rate, CoarseGrainedUnit unit,
                                    const TunedRunOptions& options) {
  FOLIOT_ASSIGN_OR_RETURN(const CoarseGrainedPlan coarse,
                          plan_coarse_grained(*pipeline_, sample_, goal_.slo, rate, unit));
  CoarseGrainedTuner autoscale(coarse);
  add_tuned(system, coarse.configuration, autoscale, options);
  return Status();
}

Status TuningComparison::add_coarse_fixed(const std::string& system, CoarseGrainedRate rate, CoarseGrainedUnit unit) {
  FOLIOT_ASSIGN_OR_RETURN(const CoarseGrainedPlan coarse,
                          plan_coarse_grained(*pipeline_, sample_, goal_.slo, rate, unit));
  add_fixed(system, coarse.configuration);
  return Status();
}

double TuningComparison::value(const std::string& system, const char* column, LateQueries late) const {
  return run_->table("results").value(
      {{"pipeline", pipeline_->name}, {"trace", trace_->name}, {"system", system}, {"late", text_of(late)}}, column);
}

std::string TuningComparison::text(const std::string& system, LateQueries late) const {
  return fmt::format("{} {:.2f} % for {:.2f} dollars", system, 100 * value(system, "attainment", late),
                     value(system, "dollars", late));
}

void TuningComparison::add(const std::string& system, LateQueries late, const TunedRun& tuned) {
  const ResultTable::Row cell{
      {"pipeline", pipeline_->name}, {"trace", trace_->name}, {"system", system}, {"late", text_of(late)}};
  ResultTable::Row row = cell;
  size_t changes = 0;
  for (const auto& stage : tuned.changes) changes += stage.size();
  row.update({{"dollars", tuned.dollars},
              {"changes", changes},
              {"offered", tuned.estimate.queries},
              {"attainment", tuned.estimate.attainment()},
              {"p99_ms", tuned.estimate.p99.to_milliseconds()}});
  run_->table("results").add(std::move(row));
  for (size_t minute = 0; minute < std::min(tuned.attainment.size(), tuned.dollars_per_hour.size()); ++minute) {
    ResultTable::Row point = cell;
    point.update({{"minute", minute},
                  {"attainment", tuned.attainment[minute]},
                  {"p99_ms", tuned.p99[minute].to_milliseconds()},
                  {"dollars_per_hour", tuned.dollars_per_hour[minute]}});
    run_->table("series").add(std::move(point));
  }
}

}  // namespace foliot
