// QueryTrace: the queries that a configuration is tried with: when each arrives, and which
// stages it visits. Visits are drawn once, so that all configurations see the same queries.
#ifndef FOLIOT_PLANNING_QUERY_TRACE_H_
#define FOLIOT_PLANNING_QUERY_TRACE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"
#include "planning/planned_pipeline.h"

namespace foliot {

struct QueryTrace {
  std::vector<int64_t> arrivals_ns;  // since the start, ascending
  std::vector<VisitSet> visits;      // by queries

  // REQUIRES: ascending arrivals.
  static QueryTrace draw(const PlannedPipeline& pipeline, std::span<const Duration> arrivals, uint64_t seed);

  size_t size() const { return arrivals_ns.size(); }
  // From the first arrival to the last.
  Duration length() const;
  // Queries per second; 0 for less than two queries.
  double rate() const;
  // The queries that arrive in [begin, end).
  QueryTrace between(Duration begin, Duration end) const;
  // The last `count` queries, or all.
  QueryTrace last(size_t count) const;
  // `blocks` blocks that are spread evenly and have `share` of the length, moved together so
  // that `gap` lies between them. REQUIRES: gap is not negative.
  QueryTrace sample(double share, uint32_t blocks, Duration gap) const;
};

}  // namespace foliot

#endif  // FOLIOT_PLANNING_QUERY_TRACE_H_
