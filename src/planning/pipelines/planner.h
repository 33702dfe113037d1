// Planner: the cheapest configuration it can find that meets a latency goal on a trace
// (InferLine, section 4.4, Algorithms 1 and 2).
//
// Algorithm 1 begins with the fastest kind and batch size 1, and adds replicas where the
// throughput is least until the goal is met. Algorithm 2 then takes, again and again, the action
// that reduces the cost most: IncreaseBatch (doubles), RemoveReplica, DowngradeHW.
//
// A kind that costs nothing is worth no more replicas than are needed: of equal costs, fewer replicas are
// better. So each action but IncreaseBatch leaves less of cost or replicas, and the search ends.
//
// What it promises of a pipeline without conditions: (1) a configuration, wherever there is one
// that meets the goal. And of every plan: (2) no single action reduces its cost and still meets
// the goal on the whole trace.
//
// Where it differs from the print, and why: docs/decisions/0123-planning-on-a-sample-first.md.
#ifndef FOLIOT_PLANNING_PIPELINES_PLANNER_H_
#define FOLIOT_PLANNING_PIPELINES_PLANNER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "foundation/base/status.h"
#include "planning/pipelines/candidate_search.h"
#include "planning/pipelines/configuration.h"
#include "planning/pipelines/estimator.h"
#include "planning/pipelines/planned_pipeline.h"
#include "planning/pipelines/query_trace.h"

namespace foliot {

struct PlannerOptions {
  // DowngradeHW: only to the next cheaper kind, as printed, which takes for granted that a
  // cheaper kind is slower at every batch size (section 4.9); or to any other kind.
  bool next_cheaper_kind_only = false;
  // The search begins on a sample of the trace of about so many queries; 0: on all of it.
  uint64_t sample_queries = 30'000;
  uint32_t threads = 2;
  // One that meets the goal, such as a plan for a tighter SLO: the plan costs no more.
  std::optional<Configuration> known{};
};

struct PipelinePlan {
  Configuration configuration;
  Estimate estimate;  // on the whole trace
  double cost = 0;    // dollars per hour
};

// Errors: kInvalidArgument: the trace is empty, the SLO is below the service time, or the goal
// would take more than kPlannedReplicasMax replicas of a stage.
Result<PipelinePlan> plan_pipeline(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal,
                                   const PlannerOptions& options = {});

// The same for pipelines of PlannedPipeline::devices, and not dearer than for a tighter SLO: since the greedy
// search may end at a dearer plan with more time, it is tried for all SLOs of a fixed series, up to the
// goal's, and each plan begins with the one before. Errors: also where it finds no plan with the
// devices that there are, naming their kind.
Result<PipelinePlan> plan_monotonely(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal,
                                     const PlannerOptions& options = {});
// Errors: kInvalidArgument: it takes more devices of a kind than there are.
Status check_devices(const PlannedPipeline& pipeline, const Configuration& configuration);
// The SLOs of that series below `below`, ascending: each a tenth above the one before.
std::vector<Duration> tighter_slos(Duration service_time, Duration below);

inline constexpr uint32_t kPlannedReplicasMax = 1 << 16;  // of one stage

// The parts of plan_pipeline(), on one trace.
class Planner {
 public:
  Planner(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal, const PlannerOptions& options);

  // Algorithm 1. nullopt: the SLO is below the service time, or kPlannedReplicasMax is not enough.
  std::optional<Configuration> initialize();
  // Algorithm 2, from a configuration that meets the goal.
  Configuration minimize_cost(Configuration configuration);
  // Adds replicas until the goal is met, each where it leaves the fewest queries late. nullopt:
  // that does not help.
  std::optional<Configuration> repair(Configuration configuration);

  bool feasible(const Configuration& configuration) { return search_.feasible(configuration); }
  Estimate estimate(const Configuration& configuration) { return search_.estimate(configuration); }

  // The actions of Algorithm 2; nullopt where there is none that meets the goal, or
  // downgrade_hardware() would not reduce the cost.
  std::optional<Configuration> increase_batch(const Configuration& from, uint32_t stage, Estimator& estimator) const;
  std::optional<Configuration> remove_replica(const Configuration& from, uint32_t stage, Estimator& estimator) const;
  std::optional<Configuration> downgrade_hardware(const Configuration& from, uint32_t stage, uint32_t kind,
                                                  Estimator& estimator) const;

 private:
  std::vector<uint32_t> kinds_below(const Configuration& from, uint32_t stage) const;
  std::optional<Configuration> best_action(const Configuration& from);
  std::optional<Configuration> first_batch_increase(const Configuration& from);
  uint32_t slowest_stage(const Configuration& configuration) const;

  const PlannedPipeline& pipeline_;
  const LatencyGoal goal_;
  const PlannerOptions options_;
  CandidateSearch search_;
};

// Of each stage the kind that is fastest at batch size 1, one replica.
Configuration fastest_configuration(const PlannedPipeline& pipeline);

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_PLANNER_H_
