// Estimator: the latency of each query of a trace under a configuration (InferLine, section 4.4).
//
// Stages meet only through arrivals, so each stage is replayed over the whole trace, in
// topological order. That gives what an event simulation of the whole pipeline gives, and is
// faster: no heap of events, and a candidate that differs in one stage from the configuration
// that is kept replays only that stage and those after it.
//
// Threading: one owner; many estimators may share pipeline and trace, which outlive them.
#ifndef FOLIOT_PLANNING_PIPELINES_ESTIMATOR_H_
#define FOLIOT_PLANNING_PIPELINES_ESTIMATOR_H_

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "foundation/base/time.h"
#include "planning/pipelines/batched_queue.h"
#include "planning/pipelines/configuration.h"
#include "planning/pipelines/planned_pipeline.h"
#include "planning/pipelines/query_trace.h"

namespace foliot {

// What a configuration has to meet.
struct LatencyGoal {
  Duration slo;
  double attainment = 0.99;  // share of the queries within the SLO

  // Of so many queries.
  uint64_t missed_most(uint64_t queries) const;

  bool operator==(const LatencyGoal&) const = default;
};

// What becomes of a query that cannot meet the SLO any more.
enum class LateQueries : uint8_t {
  kServed,  // it is served like the others, as InferLine does
  // It is refused as soon as its turn comes, by the least time that the rest of its longest path takes; and a batch is
  // no larger than lets its first query be in time. Where a whole batch waits, also one for which there is no time for
  // whole batches from here on: small ones would leave the stage overloaded. As Foliot does.
  kRefused,
};

struct Estimate {
  uint64_t queries = 0;
  uint64_t missed = 0;  // took longer than the SLO, or were refused
  // Of those that were not refused:
  Duration p50;
  Duration p99;
  Duration longest;

  double attainment() const {
    return queries == 0 ? 1 : 1 - static_cast<double>(missed) / static_cast<double>(queries);
  }
};

// By stages: how the number of replicas changes; empty: it does not.
using ReplicaChanges = std::vector<std::vector<ReplicaChange>>;

class Estimator {
 public:
  Estimator(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal);

  const QueryTrace& trace() const { return trace_; }
  const LatencyGoal& goal() const { return goal_; }

  // Whether the goal is met. Ends as soon as it is certain that it is not.
  bool feasible(const Configuration& configuration);
  // Queries that miss the SLO.
  uint64_t missed(const Configuration& configuration);
  Estimate estimate(const Configuration& configuration, const ReplicaChanges& changes = {},
                    LateQueries late = LateQueries::kServed);
  // Of each query of the last estimate() or missed(); kRefusedNs: it was refused.
  std::span<const int64_t> latencies_ns() const { return latencies_ns_; }

  static constexpr int64_t kRefusedNs = std::numeric_limits<int64_t>::max();

  // Keeps the results of this configuration: later ones replay what differs from it.
  void keep(const Configuration& configuration);

 private:
  struct Waiting {
    int64_t ready_ns;
    uint32_t query;
  };
  struct InOrder;
  struct Listed;
  struct ListedElements;
  template <typename Base>
  struct Refusable;

  // False if more than `missed_most` queries miss the SLO.
  bool replay(const Configuration& configuration, const ReplicaChanges& changes, uint64_t missed_most,
              LateQueries late = LateQueries::kServed);
  bool replay_stage(uint32_t stage, const StageConfiguration& configuration, std::span<const ReplicaChange> changes,
                    int64_t latency_most_ns, int64_t latency_whole_ns, uint64_t missed_most, int64_t* done_ns);
  const int64_t* ready_ns(const PlannedStage& stage);
  void list_waiting(uint32_t stage, const int64_t* ready_ns, int64_t* done_ns);
  uint64_t collect_latencies();

  const PlannedPipeline& pipeline_;
  const QueryTrace& trace_;
  const LatencyGoal goal_;
  std::vector<bool> visited_by_all_;  // once
  std::vector<size_t> visits_;        // by stages: of all queries
  std::vector<bool> last_;            // no stage waits for it
  const bool unconditional_;

  // When each query is done with each stage, visited or skipped: of the configuration that is
  // kept, and of another where that differs.
  Configuration kept_;
  std::vector<std::vector<int64_t>> kept_done_ns_;
  std::vector<std::vector<int64_t>> other_done_ns_;
  std::vector<const int64_t*> done_ns_;
  VisitSet replayed_ = 0;  // by the last replay()

  std::vector<uint8_t> refused_;  // by queries; empty: none is refused
  std::vector<int64_t> ready_ns_;
  std::vector<Waiting> waiting_;
  std::vector<int64_t> latencies_ns_;
};

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_ESTIMATOR_H_
