#include "planning/pipelines/estimator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <queue>
#include <set>
#include <tuple>

#include "foundation/base/test_time.h"
#include "planning/pipelines/test_pipeline.h"

namespace foliot {
namespace {

using testing::ElementsAre;

// An event simulation of the whole pipeline that is as plain as it can be.
class EventSimulation {
 public:
  EventSimulation(const PlannedPipeline& pipeline, const QueryTrace& trace, const Configuration& configuration,
                  const ReplicaChanges& changes)
      : pipeline_(pipeline), trace_(trace), configuration_(configuration), stages_(pipeline.stages.size()) {
    for (size_t i = 0; i < stages_.size(); ++i) {
      stages_[i].idle = configuration.stages[i].replicas;
      stages_[i].replicas = stages_[i].idle;
      stages_[i].done.resize(trace.size(), -1);
      stages_[i].left.resize(trace.size());
      if (changes.empty()) continue;
      for (const ReplicaChange& change : changes[i]) events_[change.at_ns].changes.emplace_back(i, change.replicas);
    }
    for (size_t query = 0; query < trace.size(); ++query) events_[trace.arrivals_ns[query]].arrivals.push_back(query);
  }

  std::vector<int64_t> latencies() {
    while (!events_.empty()) {
      const int64_t now = events_.begin()->first;
      const Event event = events_.begin()->second;
      events_.erase(events_.begin());
      handle(event, now);
      for (size_t i = 0; i < stages_.size(); ++i) dispatch(i, now);
    }
    std::vector<int64_t> all(trace_.size());
    for (size_t query = 0; query < trace_.size(); ++query) {
      for (const Stage& stage : stages_) {
        EXPECT_GE(stage.done[query], 0);
        all[query] = std::max(all[query], stage.done[query] - trace_.arrivals_ns[query]);
      }
    }
    return all;
  }

 private:
  using Visit = std::pair<size_t, uint32_t>;  // of a query, and which of them
  struct Event {
    std::vector<std::pair<size_t, uint32_t>> changes;
    std::vector<std::pair<size_t, std::vector<Visit>>> batches;  // that end
    std::vector<size_t> arrivals;
  };
  struct Stage {
    int64_t idle = 0;  // below 0: so many go once they are idle
    int64_t replicas = 0;
    std::set<size_t> waiting;  // that have been ready since
    std::map<int64_t, std::set<Visit>> ready;
    std::vector<uint32_t> left;  // visits of each query that are not over
    std::vector<int64_t> done;
  };

  void handle(const Event& event, int64_t now) {
    for (const auto& [stage, visits] : event.batches) {
      ++stages_[stage].idle;
      for (const auto& [query, element] : visits) {
        if (--stages_[stage].left[query] == 0) stages_[stage].done[query] = now;
      }
    }
    for (const auto& [stage, replicas] : event.changes) {
      stages_[stage].idle += static_cast<int64_t>(replicas) - stages_[stage].replicas;
      stages_[stage].replicas = replicas;
    }
    for (const auto& [stage, visits] : event.batches) {
      for (const auto& [query, element] : visits) advance(query, now);
    }
    for (const size_t query : event.arrivals) advance(query, now);
  }

  // Enters or skips all stages that the query waits for no more.
  void advance(size_t query, int64_t now) {
    for (size_t i = 0; i < stages_.size(); ++i) {
      const auto& parents = pipeline_.stages[i].parents;
      const bool over = std::all_of(parents.begin(), parents.end(),
                                    [&](uint32_t parent) { return stages_[parent].done[query] >= 0; });
      if (!over || stages_[i].done[query] >= 0 || !entered_.insert({i, query}).second) continue;
      stages_[i].left[query] = trace_.visits_of(query, static_cast<uint32_t>(i));
      if (stages_[i].left[query] == 0) stages_[i].done[query] = now;
      for (uint32_t element = 0; element < stages_[i].left[query]; ++element) {
        stages_[i].ready[now].emplace(query, element);
      }
    }
  }

  void dispatch(size_t stage, int64_t now) {
    Stage& at = stages_[stage];
    while (at.idle > 0 && !at.ready.empty()) {
      std::vector<Visit> batch;
      while (!at.ready.empty() && batch.size() < configuration_.stages[stage].batch) {
        auto& [since, visits] = *at.ready.begin();
        batch.push_back(*visits.begin());
        visits.erase(visits.begin());
        if (visits.empty()) at.ready.erase(at.ready.begin());
      }
      --at.idle;
      const StageKind& kind = kind_of(pipeline_.stages[stage], configuration_.stages[stage]);
      events_[now + kind.durations_ns[batch.size()]].batches.emplace_back(stage, batch);
    }
  }

  const PlannedPipeline& pipeline_;
  const QueryTrace& trace_;
  const Configuration configuration_;
  std::vector<Stage> stages_;
  std::map<int64_t, Event> events_;
  std::set<std::pair<size_t, size_t>> entered_;
};

// Any graph: parents at random, some of them needed; one kind.
PlannedPipeline random_pipeline(Random& random) {
  PlannedPipeline pipeline{"random", {}};
  const uint32_t count = 1 + static_cast<uint32_t>(random.below(6));
  for (uint32_t i = 0; i < count; ++i) {
    // Whole milliseconds, so that events often coincide.
    const auto ms_below = [&](uint64_t bound) { return ms(static_cast<int64_t>(random.below(bound))); };
    PlannedStage stage{
        .name = std::to_string(i),
        .kinds = {linear_kind("k", 1, ms(1) + ms_below(4), ms_below(3), uint32_t{1} << random.below(5))}};
    for (uint32_t parent = 0; parent < i; ++parent) {
      if (random.uniform() < 0.5) stage.parents.push_back(parent);
    }
    for (const uint32_t parent : stage.parents) {
      if (random.uniform() < 0.5) stage.needs.push_back({parent});
    }
    stage.probability = random.uniform() < 0.5 ? 1 : random.uniform();
    if (!stage.parents.empty() && !pipeline.stages[stage.parents.front()].counted_by && random.uniform() < 0.4) {
      stage.counted_by = stage.parents.front();
      for (uint64_t visits = 2 + random.below(4); visits > 0; --visits) stage.visits_shares.push_back(random.uniform());
    }
    pipeline.stages.push_back(std::move(stage));
  }
  return pipeline;
}

std::vector<Duration> random_arrivals(Random& random) {
  std::vector<Duration> arrivals;
  const uint64_t gap = 1 + random.below(6);
  for (Duration at; arrivals.size() < 300; at += ms(static_cast<int64_t>(random.below(gap)))) arrivals.push_back(at);
  return arrivals;
}

Configuration random_configuration(const PlannedPipeline& pipeline, Random& random) {
  Configuration configuration;
  for (const PlannedStage& stage : pipeline.stages) {
    const uint32_t batch = 1 + static_cast<uint32_t>(random.below(stage.kinds.front().batch_most()));
    configuration.stages.push_back({0, batch, 1 + static_cast<uint32_t>(random.below(4))});
  }
  return configuration;
}

ReplicaChanges random_changes(const PlannedPipeline& pipeline, Random& random) {
  ReplicaChanges changes(pipeline.stages.size());
  for (auto& each : changes) {
    int64_t at = 0;
    for (uint64_t i = random.below(5); i > 0; --i) {
      at += ms(1 + static_cast<int64_t>(random.below(100))).nanoseconds();
      each.push_back({at, 1 + static_cast<uint32_t>(random.below(5))});
    }
  }
  return changes;
}

TEST(EstimatorTest, EqualsAnEventSimulation) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Random random(seed);
    const PlannedPipeline pipeline = random_pipeline(random);
    const QueryTrace trace = QueryTrace::draw(pipeline, random_arrivals(random), seed);
    const Configuration configuration = random_configuration(pipeline, random);
    const ReplicaChanges changes = seed % 2 == 0 ? ReplicaChanges() : random_changes(pipeline, random);
    Estimator estimator(pipeline, trace, {ms(30)});
    const Estimate estimate = estimator.estimate(configuration, changes);
    const std::vector<int64_t> latencies(estimator.latencies_ns().begin(), estimator.latencies_ns().end());
    ASSERT_EQ(latencies, EventSimulation(pipeline, trace, configuration, changes).latencies()) << "seed " << seed;
    uint64_t late = 0;
    for (const int64_t latency : latencies) late += latency > ms(30).nanoseconds() ? 1 : 0;
    ASSERT_EQ(estimate.missed, late) << "seed " << seed;
  }
}

TEST(EstimatorTest, ACandidateBesideTheKeptConfigurationIsEstimatedAlike) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const PlannedPipeline pipeline = random_pipeline(random);
    const QueryTrace trace = QueryTrace::draw(pipeline, random_arrivals(random), seed);
    Estimator keeping(pipeline, trace, {ms(20)});
    keeping.keep(random_configuration(pipeline, random));
    for (int i = 0; i < 5; ++i) {
      Configuration candidate = random_configuration(pipeline, random);
      Estimator fresh(pipeline, trace, {ms(20)});
      const uint64_t missed = fresh.missed(candidate);
      ASSERT_EQ(keeping.missed(candidate), missed) << "seed " << seed;
      ASSERT_EQ(keeping.feasible(candidate), missed <= keeping.goal().missed_most(trace.size())) << "seed " << seed;
    }
  }
}

TEST(EstimatorTest, QuantilesAreThoseOfTheSortedLatencies) {
  const PlannedPipeline pipeline = chain({{linear_kind("cpu", 1, ms(0), ms(10), 1)}});
  std::vector<Duration> arrivals(200);  // all at once: 10 ms, 20 ms, ... 2000 ms
  const QueryTrace trace = QueryTrace::draw(pipeline, arrivals, 1);
  const Estimate estimate = Estimator(pipeline, trace, {ms(1980)}).estimate({{{0, 1, 1}}});
  EXPECT_EQ(estimate.p50, ms(1000));
  EXPECT_EQ(estimate.p99, ms(1980));
  EXPECT_EQ(estimate.longest, ms(2000));
  EXPECT_EQ(estimate.missed, 2u);
  EXPECT_TRUE(Estimator(pipeline, trace, {ms(1980)}).feasible({{{0, 1, 1}}}));
  EXPECT_FALSE(Estimator(pipeline, trace, {ms(1979)}).feasible({{{0, 1, 1}}}));
}

TEST(EstimatorTest, ABatchThatIsFullLeavesTheRest) {
  const PlannedPipeline pipeline = chain({{linear_kind("cpu", 1, ms(8), ms(1), 4)}});
  const QueryTrace trace =
      QueryTrace::draw(pipeline, std::vector<Duration>{ms(0), ms(1), ms(2), ms(3), ms(4), ms(5)}, 1);
  Estimator estimator(pipeline, trace, {ms(100)});
  estimator.estimate({{{0, 4, 1}}});
  // 1 alone until 9; then 4 until 21; then 1 until 30.
  const auto latencies = estimator.latencies_ns();
  EXPECT_THAT(std::vector<int64_t>(latencies.begin(), latencies.end()),
              ElementsAre(9'000'000, 20'000'000, 19'000'000, 18'000'000, 17'000'000, 25'000'000));
}

TEST(EstimatorTest, WhatWouldBeLateIsRefusedWhenItsTurnComes) {
  // Each takes 10 ms; the stage after it 5 ms.
  const PlannedPipeline pipeline =
      chain({{linear_kind("cpu", 1, ms(0), ms(10), 1)}, {linear_kind("cpu", 1, ms(0), ms(5), 1)}});
  const QueryTrace trace = QueryTrace::draw(pipeline, std::vector<Duration>{ms(0), ms(0), ms(0), ms(0), ms(12)}, 1);
  Estimator estimator(pipeline, trace, {ms(26)});
  const Configuration configuration{{{0, 1, 1}, {0, 1, 1}}};
  const Estimate estimate = estimator.estimate(configuration, {}, LateQueries::kRefused);
  // The third could begin at 20 ms and would be done at 35; the fifth begins at 20 in its place.
  const auto latencies = estimator.latencies_ns();
  EXPECT_THAT(std::vector<int64_t>(latencies.begin(), latencies.end()),
              ElementsAre(15'000'000, 25'000'000, Estimator::kRefusedNs, Estimator::kRefusedNs, 23'000'000));
  EXPECT_EQ(estimate.missed, 2u);
  EXPECT_EQ(estimate.longest, ms(25));
  EXPECT_EQ(estimator.estimate(configuration).missed, 3u);  // all are served
  EXPECT_EQ(estimator.estimate(configuration).longest, ms(45));
}

TEST(EstimatorTest, WithRefusalsABatchIsNoLargerThanItsFirstQueryAllows) {
  const PlannedPipeline pipeline = chain({{linear_kind("cpu", 1, ms(0), ms(10), 4)}});
  const QueryTrace trace = QueryTrace::draw(pipeline, std::vector<Duration>(3), 1);
  Estimator estimator(pipeline, trace, {ms(20)});
  EXPECT_EQ(estimator.estimate({{{0, 4, 1}}}).missed, 3u);  // a batch of three takes 30 ms
  EXPECT_EQ(estimator.estimate({{{0, 4, 1}}}, {}, LateQueries::kRefused).missed, 1u);
}

// Of 1,000 a second the first stage takes 8 in 16 ms, and the second one as many.
TEST(EstimatorTest, WithRefusalsAnOverloadKeepsWholeBatches) {
  const PlannedPipeline pipeline =
      chain({{linear_kind("cpu", 1, ms(8), ms(1), 8)}, {linear_kind("cpu", 1, ms(8), ms(1), 8)}});
  std::vector<Duration> arrivals;
  for (int i = 0; i < 4000; ++i) arrivals.push_back(ms(i));
  const QueryTrace trace = QueryTrace::draw(pipeline, arrivals, 1);
  Estimator estimator(pipeline, trace, {ms(60)});
  EXPECT_NEAR(estimator.estimate({{{0, 8, 1}, {0, 8, 1}}}, {}, LateQueries::kRefused).attainment(), 0.5, 0.02);
}

TEST(EstimatorTest, AQueryWaitsOnceForEachElementAndIsDoneWithTheLast) {
  PlannedPipeline pipeline =
      chain({{linear_kind("cpu", 1, ms(0), ms(1), 1)}, {linear_kind("cpu", 1, ms(0), ms(10), 2)}});
  pipeline.stages[1].counted_by = 0;
  pipeline.stages[1].visits_shares = {0, 0, 0, 1};
  QueryTrace trace = QueryTrace::draw(pipeline, std::vector<Duration>{ms(0), ms(0)}, 1);
  EXPECT_THAT(trace.elements[1], ElementsAre(3, 3));
  trace.elements[1] = {3, 0};
  Estimator estimator(pipeline, trace, {ms(31)});
  EXPECT_EQ(estimator.estimate({{{0, 1, 1}, {0, 2, 1}}}).missed, 0u);
  const auto latencies = estimator.latencies_ns();
  // Two in 20 ms, and one in 10; the other query has none.
  EXPECT_THAT(std::vector<int64_t>(latencies.begin(), latencies.end()), ElementsAre(31'000'000, 2'000'000));
  EXPECT_EQ(estimator.estimate({{{0, 1, 1}, {0, 2, 2}}}).longest, ms(21));
}

}  // namespace
}  // namespace foliot
