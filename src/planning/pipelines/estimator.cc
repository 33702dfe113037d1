#include "planning/pipelines/estimator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// Queries between two looks at how many were late.
constexpr size_t kChunk = 8192;
constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

bool ascending(const int64_t* values, size_t count) {
  // In blocks without a branch in each, which the compiler vectorises.
  constexpr size_t kBlock = 1024;
  for (size_t i = 1; i < count;) {
    const size_t end = std::min(i + kBlock, count);
    bool falls = false;
    for (; i < end; ++i) falls |= values[i] < values[i - 1];
    if (falls) return false;
  }
  return true;
}

Duration at_quantile(std::vector<int64_t>& values, double quantile) {
  if (values.empty()) return Duration();
  const double rank = std::ceil(quantile * static_cast<double>(values.size()));
  const auto nth = values.begin() + (static_cast<int64_t>(rank) - 1);
  std::nth_element(values.begin(), nth, values.end());
  return Duration::nanoseconds(*nth);
}

// The longest path after each stage, of a query alone or in whole batches.
std::vector<int64_t> remaining_ns(const PlannedPipeline& pipeline, const Configuration& configuration, bool whole) {
  std::vector<int64_t> remaining(pipeline.stages.size(), 0);
  for (size_t i = pipeline.stages.size(); i-- > 0;) {
    const uint32_t size = whole ? configuration.stages[i].batch : 1;
    const int64_t own = kind_of(pipeline.stages[i], configuration.stages[i]).durations_ns[size];
    for (const uint32_t parent : pipeline.stages[i].parents) {
      remaining[parent] = std::max(remaining[parent], own + remaining[i]);
    }
  }
  return remaining;
}

}  // namespace

uint64_t LatencyGoal::missed_most(uint64_t queries) const {
  const double met = std::ceil(attainment * static_cast<double>(queries) * (1 - 1e-12));
  return queries - std::min(queries, static_cast<uint64_t>(met));
}

// All queries, which become ready in their order of arrival.
struct Estimator::InOrder {
  const int64_t* ready;
  int64_t* done;
  const int64_t* arrivals;

  int64_t ready_ns(size_t i) const { return ready[i]; }
  void finish(size_t i, int64_t at_ns) { done[i] = at_ns; }
  int64_t latency_ns(size_t i) const { return done[i] - arrivals[i]; }
};

// Those that visit, sorted by when they are ready.
struct Estimator::Listed {
  const Waiting* waiting;
  int64_t* done;
  const int64_t* arrivals;

  int64_t ready_ns(size_t i) const { return waiting[i].ready_ns; }
  void finish(size_t i, int64_t at_ns) { done[waiting[i].query] = at_ns; }
  int64_t latency_ns(size_t i) const { return done[waiting[i].query] - arrivals[waiting[i].query]; }
};

// The same, where queries visit several times, and are done with the last.
struct Estimator::ListedElements : Listed {
  void finish(size_t i, int64_t at_ns) {
    int64_t& done_ns = done[waiting[i].query];
    done_ns = std::max(done_ns, at_ns);
  }
};

// Where those that would be late are refused.
template <typename Base>
struct Estimator::Refusable : Base {
  using Base::arrivals;
  using Base::waiting;

  uint8_t* refused;
  std::span<const int64_t> durations_ns;
  // From arrival to the end of this stage; `whole`: where it and the stages after it run whole batches.
  int64_t latency_most_ns;
  int64_t latency_whole_ns;

  size_t fitting(size_t i, int64_t start_ns, size_t batch, bool whole) const {
    const int64_t arrived_ns = arrivals[waiting[i].query];
    if (whole && latency_whole_ns >= durations_ns[batch])
      return durations_ns[batch] <= arrived_ns + latency_whole_ns - start_ns ? batch : 0;
    const int64_t left_ns = arrived_ns + latency_most_ns - start_ns;
    while (batch > 0 && durations_ns[batch] > left_ns) --batch;
    return batch;
  }
  void refuse(size_t i, int64_t at_ns) {
    refused[waiting[i].query] = 1;
    Base::finish(i, at_ns);
  }
};

namespace {

template <typename Queries>
bool serve_all(BatchedQueue& queue, Queries queries, size_t count, int64_t latency_most_ns, uint64_t missed_most) {
  if (missed_most == kNoLimit) {
    queue.serve(queries, 0, count, count);
    return true;
  }
  uint64_t missed = 0;
  for (size_t begin = 0; begin < count;) {
    const size_t end = queue.serve(queries, begin, std::min(begin + kChunk, count), count);
    for (; begin < end; ++begin) missed += queries.latency_ns(begin) > latency_most_ns ? 1 : 0;
    if (missed > missed_most) return false;
  }
  return true;
}

}  // namespace

Estimator::Estimator(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal)
    : pipeline_(pipeline),
      trace_(trace),
      goal_(goal),
      last_(pipeline.stages.size(), true),
      unconditional_(pipeline.unconditional()),
      other_done_ns_(pipeline.stages.size()),
      done_ns_(pipeline.stages.size()) {
  FOLIOT_CHECK(!pipeline.stages.empty() && pipeline.stages.size() <= kStagesMax);
  VisitSet by_all = ~VisitSet{0};
  for (const VisitSet visits : trace.visits) by_all &= visits;
  for (uint32_t i = 0; i < pipeline.stages.size(); ++i) {
    const bool has_elements = pipeline.stages[i].counted_by.has_value();
    visited_by_all_.push_back((by_all >> i & 1) != 0 && !has_elements);
    size_t visits = trace.size();  // at most
    if (has_elements) {
      visits = 0;
      for (size_t query = 0; query < trace.size(); ++query) visits += trace.visits_of(query, i);
    }
    visits_.push_back(visits);
    for (const uint32_t parent : pipeline.stages[i].parents) last_[parent] = false;
  }
}

bool Estimator::feasible(const Configuration& configuration) {
  const uint64_t most = goal_.missed_most(trace_.size());
  return replay(configuration, {}, most) && collect_latencies() <= most;
}

uint64_t Estimator::missed(const Configuration& configuration) {
  replay(configuration, {}, kNoLimit);
  return collect_latencies();
}

Estimate Estimator::estimate(const Configuration& configuration, const ReplicaChanges& changes, LateQueries late) {
  replay(configuration, changes, kNoLimit, late);
  Estimate estimate{.queries = trace_.size(), .missed = collect_latencies()};
  if (trace_.size() == 0) return estimate;
  std::vector<int64_t> latencies = latencies_ns_;
  std::erase(latencies, kRefusedNs);
  if (latencies.empty()) return estimate;
  estimate.p99 = at_quantile(latencies, 0.99);
  estimate.p50 = at_quantile(latencies, 0.5);
  estimate.longest = Duration::nanoseconds(*std::max_element(latencies.begin(), latencies.end()));
  return estimate;
}

void Estimator::keep(const Configuration& configuration) {
  replay(configuration, {}, kNoLimit);
  kept_ = configuration;
  kept_done_ns_.resize(pipeline_.stages.size());
  for (uint32_t i = 0; i < pipeline_.stages.size(); ++i) {
    if ((replayed_ >> i & 1) != 0) std::swap(kept_done_ns_[i], other_done_ns_[i]);
  }
}

bool Estimator::replay(const Configuration& configuration, const ReplicaChanges& changes, uint64_t missed_most,
                       LateQueries late) {
  FOLIOT_CHECK(configuration.stages.size() == pipeline_.stages.size());
  refused_.assign(late == LateQueries::kRefused ? trace_.size() : 0, 0);
  const std::vector<int64_t> remaining = remaining_ns(pipeline_, configuration, false);
  const std::vector<int64_t> remaining_whole = remaining_ns(pipeline_, configuration, true);
  replayed_ = 0;
  for (uint32_t i = 0; i < pipeline_.stages.size(); ++i) {
    const auto& parents = pipeline_.stages[i].parents;
    const bool differs =
        kept_.stages.empty() || !changes.empty() || !refused_.empty() || kept_.stages[i] != configuration.stages[i];
    if (!differs &&
        std::none_of(parents.begin(), parents.end(), [&](uint32_t parent) { return (replayed_ >> parent & 1) != 0; })) {
      done_ns_[i] = kept_done_ns_[i].data();
      continue;
    }
    replayed_ |= VisitSet{1} << i;
    other_done_ns_[i].resize(trace_.size());
    done_ns_[i] = other_done_ns_[i].data();
    // A query that skips a later stage needs no time for it.
    const bool remaining_counts = unconditional_ || !refused_.empty();
    const int64_t latency_most_ns = goal_.slo.nanoseconds() - (remaining_counts ? remaining[i] : 0);
    const int64_t latency_whole_ns = goal_.slo.nanoseconds() - remaining_whole[i];
    if (!replay_stage(i, configuration.stages[i], changes.empty() ? std::span<const ReplicaChange>() : changes[i],
                      latency_most_ns, latency_whole_ns, missed_most, other_done_ns_[i].data())) {
      return false;
    }
  }
  return true;
}

bool Estimator::replay_stage(uint32_t stage, const StageConfiguration& configuration,
                             std::span<const ReplicaChange> changes, int64_t latency_most_ns, int64_t latency_whole_ns,
                             uint64_t missed_most, int64_t* done_ns) {
  const PlannedStage& planned = pipeline_.stages[stage];
  const int64_t* const ready = ready_ns(planned);
  const int64_t* const arrivals = trace_.arrivals_ns.data();
  const std::vector<int64_t>& durations_ns = kind_of(planned, configuration).durations_ns;
  BatchedQueue queue(durations_ns, configuration.batch, configuration.replicas, changes);
  const bool has_elements = planned.counted_by.has_value();
  // Queries are counted, not their visits.
  if (has_elements) missed_most = kNoLimit;
  if (!refused_.empty()) {
    list_waiting(stage, ready, done_ns);
    const auto serve = [&](auto listed) {
      Refusable<decltype(listed)> queries{listed, refused_.data(), durations_ns, latency_most_ns, latency_whole_ns};
      return serve_all(queue, queries, waiting_.size(), latency_most_ns, missed_most);
    };
    const Listed listed{waiting_.data(), done_ns, arrivals};
    return has_elements ? serve(ListedElements{listed}) : serve(listed);
  }
  if (visited_by_all_[stage] && ascending(ready, trace_.size())) {
    return serve_all(queue, InOrder{ready, done_ns, arrivals}, trace_.size(), latency_most_ns, missed_most);
  }
  list_waiting(stage, ready, done_ns);
  const Listed listed{waiting_.data(), done_ns, arrivals};
  if (has_elements) {
    return serve_all(queue, ListedElements{listed}, waiting_.size(), latency_most_ns, missed_most);
  }
  return serve_all(queue, listed, waiting_.size(), latency_most_ns, missed_most);
}

const int64_t* Estimator::ready_ns(const PlannedStage& stage) {
  if (stage.parents.empty()) return trace_.arrivals_ns.data();
  if (stage.parents.size() == 1) return done_ns_[stage.parents.front()];
  const int64_t* const first = done_ns_[stage.parents.front()];
  ready_ns_.assign(first, first + trace_.size());
  for (size_t i = 1; i < stage.parents.size(); ++i) {
    const int64_t* const parent = done_ns_[stage.parents[i]];
    for (size_t query = 0; query < ready_ns_.size(); ++query) {
      ready_ns_[query] = std::max(ready_ns_[query], parent[query]);
    }
  }
  return ready_ns_.data();
}

// Queries become ready nearly in their order of arrival, so each is inserted from the end. Of
// those that are ready at one instant, the one that arrived first comes first.
void Estimator::list_waiting(uint32_t stage, const int64_t* ready_ns, int64_t* done_ns) {
  waiting_.resize(visits_[stage]);
  const bool has_elements = pipeline_.stages[stage].counted_by.has_value();
  Waiting* const list = waiting_.data();
  const VisitSet* const visits = trace_.visits.data();
  size_t count = 0;
  size_t moves = 0;
  const size_t moves_most = 32 * visits_[stage];
  for (size_t query = 0; query < trace_.size(); ++query) {
    const int64_t ready = ready_ns[query];
    if ((visits[query] >> stage & 1) == 0 || (!refused_.empty() && refused_[query] != 0)) {
      done_ns[query] = ready;
      continue;
    }
    uint32_t elements = 1;
    if (has_elements) {
      elements = trace_.visits_of(query, stage);
      done_ns[query] = ready;
    }
    for (; elements > 0; --elements) {
      size_t slot = count++;
      if (moves < moves_most) {
        for (; slot > 0 && list[slot - 1].ready_ns > ready; --slot, ++moves) list[slot] = list[slot - 1];
      }
      list[slot] = {ready, static_cast<uint32_t>(query)};
    }
  }
  waiting_.resize(count);
  if (moves < moves_most) return;
  std::sort(waiting_.begin(), waiting_.end(), [](const Waiting& a, const Waiting& b) {
    return a.ready_ns != b.ready_ns ? a.ready_ns < b.ready_ns : a.query < b.query;
  });
}

uint64_t Estimator::collect_latencies() {
  latencies_ns_.assign(trace_.size(), 0);
  for (uint32_t stage = 0; stage < pipeline_.stages.size(); ++stage) {
    if (!last_[stage]) continue;
    const int64_t* const done = done_ns_[stage];
    for (size_t i = 0; i < latencies_ns_.size(); ++i) {
      latencies_ns_[i] = std::max(latencies_ns_[i], done[i] - trace_.arrivals_ns[i]);
    }
  }
  for (size_t i = 0; i < refused_.size(); ++i) {
    if (refused_[i] != 0) latencies_ns_[i] = kRefusedNs;
  }
  const int64_t slo = goal_.slo.nanoseconds();
  return static_cast<uint64_t>(
      std::count_if(latencies_ns_.begin(), latencies_ns_.end(), [&](int64_t latency) { return latency > slo; }));
}

}  // namespace foliot
