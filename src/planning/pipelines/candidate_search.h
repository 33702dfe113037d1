// CandidateSearch: estimates many configurations of one pipeline on one trace, several at a
// time, each on a thread of its own. Results do not depend on the number of threads.
//
// Threading: one owner; it starts its threads in run() and joins them there.
#ifndef FOLIOT_PLANNING_PIPELINES_CANDIDATE_SEARCH_H_
#define FOLIOT_PLANNING_PIPELINES_CANDIDATE_SEARCH_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "planning/pipelines/configuration.h"
#include "planning/pipelines/estimator.h"
#include "planning/pipelines/planned_pipeline.h"
#include "planning/pipelines/query_trace.h"

namespace foliot {

class CandidateSearch {
 public:
  using Task = std::function<void(Estimator& estimator)>;

  // REQUIRES: threads > 0; pipeline and trace outlive it.
  CandidateSearch(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal, uint32_t threads);

  // The configuration that candidates differ from (Estimator::keep).
  void keep(const Configuration& configuration);
  // Each task once; they may run at the same time.
  void run(std::span<const Task> tasks);
  bool feasible(const Configuration& configuration) { return estimators_.front().feasible(configuration); }
  Estimate estimate(const Configuration& configuration) { return estimators_.front().estimate(configuration); }

  const QueryTrace& trace() const { return estimators_.front().trace(); }

  // The fewest replicas of a stage, in batches of at most `batch`, that could meet the goal: in
  // all the time there is they serve the queries that must not be late. At least 1.
  uint32_t replicas_least(uint32_t stage, const StageKind& kind, uint32_t batch) const;

 private:
  std::vector<Estimator> estimators_;
  std::vector<uint64_t> visits_most_;  // by stages: of one query
  std::vector<uint64_t> visits_;       // by stages
};

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_CANDIDATE_SEARCH_H_
