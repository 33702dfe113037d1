#include "planning/pipelines/confident_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "foundation/base/units.h"

namespace foliot {
namespace {

constexpr size_t kBlockQueries = 64;  // queries; of a short trace a twentieth
constexpr size_t kBlocksLeast = 20;

uint64_t missed(std::deque<Estimator>& estimators, const Configuration& configuration) {
  uint64_t all = 0;
  for (Estimator& each : estimators) all += each.missed(configuration);
  return all;
}

// One replica more, where it leaves the fewest queries late; where one alone changes nothing, everywhere.
Configuration extended(std::deque<Estimator>& estimators, const Configuration& from) {
  Configuration best = from;
  uint64_t fewest = missed(estimators, from);
  for (size_t i = 0; i < from.stages.size(); ++i) {
    Configuration more = from;
    ++more.stages[i].replicas;
    const uint64_t late = missed(estimators, more);
    if (late >= fewest) continue;
    best = more;
    fewest = late;
  }
  if (best != from) return best;
  for (StageConfiguration& stage : best.stages) ++stage.replicas;
  return best;
}

}  // namespace

QueryTrace redraw(const QueryTrace& trace, Random& random) {
  const size_t block = std::clamp<size_t>(trace.size() / kBlocksLeast, 1, kBlockQueries);
  const int64_t start = trace.arrivals_ns.front();
  const int64_t length = trace.length().nanoseconds();
  QueryTrace drawn;
  drawn.elements.resize(trace.elements.size());
  for (int64_t at = 0;;) {
    const size_t begin = random.below(trace.size() - 1);
    for (size_t i = 0; i < block; ++i) {
      const size_t query = 1 + (begin + i) % (trace.size() - 1);
      at += trace.arrivals_ns[query] - trace.arrivals_ns[query - 1];
      // A block without a gap would go on for ever.
      if (at > length || drawn.size() >= 4 * trace.size()) return drawn;
      drawn.arrivals_ns.push_back(start + at);
      drawn.visits.push_back(trace.visits[query]);
      for (size_t stage = 0; stage < trace.elements.size(); ++stage) {
        if (!trace.elements[stage].empty()) drawn.elements[stage].push_back(trace.elements[stage][query]);
      }
    }
  }
}

Result<PipelinePlan> with_confidence(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal,
                                     PipelinePlan plan, double confidence, uint64_t seed) {
  if (trace.size() <= kBlocksLeast || trace.rate() <= 0) {
    return Status::invalid_argument(fmt::format(
        "the trace has {} queries in {}, of which no others can be drawn for a confidence: give one of more than {} "
        "queries at different instants",
        trace.size(), format_duration(trace.length()), kBlocksLeast));
  }
  Random random(seed);
  std::deque<QueryTrace> traces;
  std::deque<Estimator> estimators;
  while (traces.size() < kConfidenceTraces) {
    QueryTrace once = redraw(trace, random);
    if (once.rate() <= 0) continue;
    estimators.emplace_back(pipeline, traces.emplace_back(redraw(once, random)), goal);
  }
  const auto needed = static_cast<int64_t>(std::ceil(confidence * kConfidenceTraces));
  const auto holds = [&](const Configuration& configuration) {
    return std::ranges::count_if(estimators, [&](Estimator& each) { return each.feasible(configuration); }) >= needed;
  };
  Configuration most = plan.configuration;
  for (StageConfiguration& stage : most.stages) stage.replicas = kPlannedReplicasMax;
  if (!holds(most)) {
    return Status::invalid_argument(fmt::format(
        "no number of replicas meets the goal with the confidence {:g}: take a longer SLO, a lower attainment or a "
        "lower confidence",
        confidence));
  }
  while (!holds(plan.configuration)) plan.configuration = extended(estimators, plan.configuration);
  FOLIOT_RETURN_IF_ERROR(check_devices(pipeline, plan.configuration));
  plan.estimate = Estimator(pipeline, trace, goal).estimate(plan.configuration);
  plan.cost = cost(pipeline, plan.configuration);
  return plan;
}

}  // namespace foliot
