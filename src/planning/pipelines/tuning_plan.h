// TuningPlan: what a tuner needs of a plan and of the trace that it was made for, so that it can follow the
// arrivals where neither is at hand (InferLine, section 4.5). planning/pipelines/plan_file.h keeps one in a file.
#ifndef FOLIOT_PLANNING_PIPELINES_TUNING_PLAN_H_
#define FOLIOT_PLANNING_PIPELINES_TUNING_PLAN_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "planning/pipelines/configuration.h"
#include "planning/pipelines/envelope.h"
#include "planning/pipelines/estimator.h"
#include "planning/pipelines/planned_pipeline.h"
#include "planning/pipelines/query_trace.h"

namespace foliot {

struct TuningPlan {
  struct Stage {
    std::string name;
    std::string model{};      // what computes it; empty: unknown
    std::string kind;         // of device
    uint32_t batch = 1;       // rows of the largest batch
    uint32_t replicas = 1;    // at the planned rate
    double scale_factor = 1;  // visits of a query, on average
    double throughput = 0;    // rows per second of one replica in full batches; above 0
    // For estimates; no batch sizes: unknown.
    double price = 0;                     // dollars per hour of a replica
    std::vector<uint32_t> batch_sizes{};  // ascending, from 1 to `batch` or the first above it
    std::vector<Duration> durations{};    // by these; above 0, never falls

    bool operator==(const Stage&) const = default;
  };

  std::string pipeline;
  std::string content{};      // a hash of its pipeline.toml (PipelineSpec::content); empty: unknown
  LatencyGoal goal{};         // an slo of 0: unknown
  double rate = 0;            // queries per second of the trace; above 0
  Envelope envelope;          // of the trace; at least one window
  std::vector<Stage> stages;  // 1 to kStagesMax; each after those that it waits for

  // It says all that estimate_pipeline() takes.
  bool can_estimate() const;

  bool operator==(const TuningPlan&) const = default;
};

// What an Estimator needs of the plan: each stage on the plan's kind. `edges`: of the stages.
// REQUIRES: can_estimate().
PlannedPipeline estimate_pipeline(const TuningPlan& plan, std::span<const StageEdges> edges);
// The plan's own, of that pipeline.
Configuration estimate_configuration(const TuningPlan& plan);

// REQUIRES: `trace` has a rate. Models, content and goal are left to the caller.
TuningPlan tuning_plan(const PlannedPipeline& pipeline, const Configuration& planned, const QueryTrace& trace);

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_TUNING_PLAN_H_
