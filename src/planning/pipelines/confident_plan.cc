#include "planning/pipelines/confident_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "foundation/base/units.h"

namespace foliot {
namespace {

constexpr size_t kBlockQueries = 64;  // queries; of a short trace a twentieth
constexpr size_t kBlocksLeast = 20;

// The traces that are drawn, and what configurations keep on them.
class DrawnTraces {
 public:
  struct Standing {
    uint64_t held = 0;    // traces on which the goal is met
    uint64_t missed = 0;  // queries of all traces

    bool operator<(const Standing& other) const {
      return held != other.held ? held < other.held : missed > other.missed;
    }
  };

  DrawnTraces(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal, Random& random) {
    while (traces_.size() < kConfidenceTraces) {
      QueryTrace once = redraw(trace, random);
      if (once.rate() <= 0) continue;
      estimators_.emplace_back(pipeline, traces_.emplace_back(redraw(once, random)), goal);
    }
  }

  Standing standing(const Configuration& configuration) {
    const auto known = std::ranges::find(known_, configuration, [](const auto& each) { return each.first; });
    if (known != known_.end()) return known->second;
    Standing found;
    for (Estimator& each : estimators_) {
      const uint64_t missed = each.missed(configuration);
      found.missed += missed;
      found.held += missed <= each.goal().missed_most(each.trace().size()) ? 1 : 0;
    }
    known_.emplace_back(configuration, found);
    return found;
  }

 private:
  std::deque<QueryTrace> traces_;
  std::deque<Estimator> estimators_;
  std::vector<std::pair<Configuration, Standing>> known_;
};

// Adds replicas to a plan until it holds, and takes away what it does not need. Batches cost nothing, and the largest
// that keeps the goal on one trace is rarely the best on others, so they are halved and doubled on the way.
class ConfidentSearch {
 public:
  ConfidentSearch(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal, DrawnTraces& drawn,
                  uint64_t needed)
      : pipeline_(pipeline), own_(pipeline, trace, goal), drawn_(drawn), needed_(needed) {}

  bool holds(const Configuration& configuration) {
    return drawn_.standing(configuration).held >= needed_ && own_.feasible(configuration);
  }
  Configuration search(const Configuration& planned) {
    Configuration found = with_best_batches(planned);
    while (!holds(found)) found = extended(found);
    while (std::optional<Configuration> cheaper = reduced(found)) found = *std::move(cheaper);
    return found;
  }
  Estimate estimate(const Configuration& configuration) { return own_.estimate(configuration); }

 private:
  Configuration with_best_batches(Configuration best) {
    for (bool better = true; std::exchange(better, false);) {
      for (size_t i = 0; i < best.stages.size(); ++i) {
        const uint32_t batch = best.stages[i].batch;
        const uint32_t most = kind_of(pipeline_.stages[i], best.stages[i]).batch_most();
        for (const uint32_t other : {std::max(batch / 2, uint32_t{1}), std::min(2 * batch, most)}) {
          Configuration changed = best;
          changed.stages[i].batch = other;
          if (!(drawn_.standing(best) < drawn_.standing(changed))) continue;
          best = changed;
          better = true;
        }
      }
    }
    return best;
  }

  // One replica more, of those that hold then the cheapest, else where most is kept; where one alone changes nothing,
  // everywhere.
  Configuration extended(const Configuration& from) {
    const auto rank = [&](const Configuration& of) {
      const bool held = holds(of);
      return std::tuple(held, held ? -cost(pipeline_, of) : 0, drawn_.standing(of));
    };
    std::optional<Configuration> best;
    for (size_t i = 0; i < from.stages.size(); ++i) {
      Configuration more = from;
      ++more.stages[i].replicas;
      more = with_best_batches(more);
      if (!best || rank(*best) < rank(more)) best = std::move(more);
    }
    if (drawn_.standing(from) < drawn_.standing(*best)) return *std::move(best);
    best = from;
    for (StageConfiguration& stage : best->stages) ++stage.replicas;
    return *std::move(best);
  }

  // One replica less, of the dearest that can go; nullopt: none can.
  std::optional<Configuration> reduced(const Configuration& from) {
    std::optional<Configuration> best;
    for (size_t i = 0; i < from.stages.size(); ++i) {
      if (from.stages[i].replicas == 1) continue;
      Configuration fewer = from;
      --fewer.stages[i].replicas;
      fewer = with_best_batches(fewer);
      if (holds(fewer) && (!best || cost(pipeline_, fewer) < cost(pipeline_, *best))) best = std::move(fewer);
    }
    return best;
  }

  const PlannedPipeline& pipeline_;
  Estimator own_;
  DrawnTraces& drawn_;
  const uint64_t needed_;
};

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
  const auto needed = static_cast<uint64_t>(std::ceil(confidence * kConfidenceTraces));
  if (needed == 0) return plan;
  Random random(seed);
  DrawnTraces drawn(pipeline, trace, goal, random);
  ConfidentSearch search(pipeline, trace, goal, drawn, needed);
  Configuration most = plan.configuration;
  for (StageConfiguration& stage : most.stages) stage.replicas = kPlannedReplicasMax;
  if (!search.holds(most)) {
    return Status::invalid_argument(fmt::format(
        "no number of replicas meets the goal with the confidence {:g}: take a longer SLO, a lower attainment or a "
        "lower confidence",
        confidence));
  }
  plan.configuration = search.search(plan.configuration);
  FOLIOT_RETURN_IF_ERROR(check_devices(pipeline, plan.configuration));
  plan.estimate = search.estimate(plan.configuration);
  plan.cost = cost(pipeline, plan.configuration);
  return plan;
}

}  // namespace foliot
