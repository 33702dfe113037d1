// QueryTrace: the queries that a configuration is tried with: when each arrives, which stages it
// visits, and how often those that are visited for each element. Visits are drawn once, so that all configurations see
// the same queries.
#ifndef FOLIOT_PLANNING_PIPELINES_QUERY_TRACE_H_
#define FOLIOT_PLANNING_PIPELINES_QUERY_TRACE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "foundation/base/time.h"
#include "planning/pipelines/planned_pipeline.h"

namespace foliot {

struct QueryTrace {
  std::vector<int64_t> arrivals_ns;  // since the start, ascending
  std::vector<VisitSet> visits;      // by queries
  // By stages and queries: visits, if the stage is visited at all. Empty: one, of each stage or of this one.
  std::vector<std::vector<uint8_t>> elements{};

  // REQUIRES: ascending arrivals.
  static QueryTrace draw(const PlannedPipeline& pipeline, std::span<const Duration> arrivals, uint64_t seed);

  // One more query, of which the visits are drawn. REQUIRES: it arrives last.
  void add(int64_t arrival_ns, const PlannedPipeline& pipeline, Random& random);
  // Visits that this query makes of this stage.
  uint32_t visits_of(size_t query, uint32_t stage) const {
    if ((visits[query] >> stage & 1) == 0) return 0;
    return elements.empty() || elements[stage].empty() ? 1 : elements[stage][query];
  }

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

 private:
  // Appends the queries from `first` on, up to `last`, each earlier by so much.
  void append(const QueryTrace& from, size_t first, size_t last, int64_t earlier_ns);
};

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_QUERY_TRACE_H_
