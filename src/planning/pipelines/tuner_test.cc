#include "planning/pipelines/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "foundation/base/test_seed.h"
#include "foundation/base/test_time.h"
#include "planning/pipelines/coarse_grained.h"
#include "planning/pipelines/planner.h"
#include "planning/pipelines/rate_tuner.h"
#include "planning/pipelines/replan_tuner.h"
#include "planning/pipelines/test_pipeline.h"
#include "planning/pipelines/tuned_run.h"

namespace foliot {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Duration> even_arrivals(double rate, Duration begin, Duration end) {
  std::vector<Duration> arrivals;
  for (int64_t i = 0;; ++i) {
    const Duration at = begin + Duration::from_seconds(static_cast<double>(i) / rate);
    if (at >= end) return arrivals;
    arrivals.push_back(at);
  }
}

void append(std::vector<Duration>& to, const std::vector<Duration>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

TEST(EnvelopeTest, WindowsDoubleUpToAMinute) {
  const std::vector<Duration> windows = envelope_windows(ms(100));
  EXPECT_EQ(windows.front(), ms(100));
  EXPECT_EQ(windows[1], ms(200));
  EXPECT_EQ(windows.back(), Duration::seconds(60));
  EXPECT_EQ(windows.size(), 11u);
  EXPECT_THAT(envelope_windows(Duration::seconds(90)), ElementsAre(Duration::seconds(60)));
}

TEST(EnvelopeTest, IsTheMostInAnyWindow) {
  Random random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<int64_t> arrivals;
    int64_t at = 0;
    for (int i = 0; i < 100; ++i) arrivals.push_back(at += static_cast<int64_t>(random.below(20)));
    std::vector<Duration> windows{Duration::nanoseconds(1), Duration::nanoseconds(10), Duration::nanoseconds(100)};
    std::vector<uint32_t> most(3);
    for (size_t w = 0; w < 3; ++w) {
      for (const int64_t end : arrivals) {
        const auto count = std::count_if(arrivals.begin(), arrivals.end(), [&](int64_t each) {
          return each <= end && each > end - windows[w].nanoseconds();
        });
        most[w] = std::max(most[w], static_cast<uint32_t>(count));
      }
    }
    const Envelope envelope = traffic_envelope(arrivals, windows);
    EXPECT_EQ(envelope.most, most);
    SlidingWindows sliding(windows, 128);
    std::vector<uint32_t> seen(3);
    for (const int64_t each : arrivals) {
      sliding.add(TimePoint::from_nanoseconds(each));
      for (size_t w = 0; w < 3; ++w) seen[w] = std::max(seen[w], sliding.counts()[w]);
    }
    EXPECT_EQ(seen, most);
  }
}

TEST(EnvelopeTest, SlidingWindowsForgetTheOldestBeyondTheirLimit) {
  SlidingWindows sliding({Duration::seconds(1)}, 4);
  for (int i = 0; i < 10; ++i) sliding.add(at(0));
  EXPECT_THAT(sliding.counts(), ElementsAre(4));
  sliding.add(at(2000));
  EXPECT_THAT(sliding.counts(), ElementsAre(1));
}

// Two stages of 10 ms, of which half of the queries visit the second; 50 queries per second for
// two minutes.
class TunerTest : public testing::Test {
 protected:
  TunerTest()
      : pipeline_(chain({{linear_kind("cpu", 1, ms(0), ms(10), 1)}, {linear_kind("gpu", 4, ms(0), ms(10), 1)}})) {
    pipeline_.stages[1].probability = 0.5;
    pipeline_.stages[1].scale_factor = 0.5;
    planned_on_ = QueryTrace::draw(pipeline_, even_arrivals(50, Duration(), Duration::seconds(120)), 1);
  }

  // Feeds arrivals; returns how often the replicas changed.
  int feed(ReplicaTuner& tuner, const std::vector<Duration>& arrivals) {
    int changes = 0;
    for (const Duration each : arrivals) {
      for (; tick_ <= TimePoint() + each; tick_ += Duration::seconds(1)) changes += tuner.tick(tick_) ? 1 : 0;
      changes += tuner.arrive(TimePoint() + each) ? 1 : 0;
    }
    return changes;
  }

  PlannedPipeline pipeline_;
  const Configuration planned_{{{0, 1, 2}, {0, 1, 2}}};
  QueryTrace planned_on_;
  TimePoint tick_ = at(1000);
};

TEST_F(TunerTest, RhoIsTheShareOfTheThroughputThatIsUsed) {
  EXPECT_THAT(Tuner(pipeline_, planned_, planned_on_, {}).rho(),
              ElementsAre(testing::DoubleNear(0.25, 1e-3), testing::DoubleNear(0.125, 1e-3)));
  EXPECT_THAT(Tuner(pipeline_, planned_, planned_on_, {.rho_as_printed = true}).rho(),
              ElementsAre(testing::DoubleNear(0.25, 1e-3), testing::DoubleNear(0.25, 1e-3)));
}

TEST_F(TunerTest, LeavesThePlannedWorkloadAlone) {
  Tuner tuner(pipeline_, planned_, planned_on_, {});
  EXPECT_EQ(feed(tuner, even_arrivals(50, Duration(), Duration::seconds(100))), 0);
  EXPECT_THAT(tuner.replicas(), ElementsAre(2, 2));
}

TEST_F(TunerTest, AddsReplicasAtOnceForTheRateThatExceedsTheEnvelope) {
  Tuner tuner(pipeline_, planned_, planned_on_, {});
  feed(tuner, even_arrivals(50, Duration(), Duration::seconds(60)));
  // Twice the rate: within the shortest window, 20 ms, there are 2 in place of 1.
  feed(tuner, even_arrivals(100, Duration::seconds(60), Duration::from_seconds(60.1)));
  EXPECT_THAT(tuner.replicas(), ElementsAre(4, 4));

  // As printed, the second stage, which half of the queries visit, gets half of what it needs.
  Tuner printed(pipeline_, planned_, planned_on_, {.rho_as_printed = true});
  tick_ = at(1000);
  feed(printed, even_arrivals(50, Duration(), Duration::seconds(60)));
  feed(printed, even_arrivals(100, Duration::seconds(60), Duration::from_seconds(60.1)));
  EXPECT_THAT(printed.replicas(), ElementsAre(4, 2));
}

// 6 or 7 in 20 ms, where the envelope has 5 or 6: printed, that is a rate of 300 per second.
TEST_F(TunerTest, ByRatioOneBurstDoesNotCountAsARate) {
  std::vector<Duration> planned_arrivals = even_arrivals(50, Duration(), Duration::seconds(120));
  for (int i = 0; i < 5; ++i) planned_arrivals.push_back(Duration::seconds(120));
  const QueryTrace planned_on = QueryTrace::draw(pipeline_, planned_arrivals, 1);
  std::vector<Duration> live = even_arrivals(50, Duration(), Duration::seconds(60));
  for (int i = 0; i < 6; ++i) live.push_back(Duration::seconds(60));
  Tuner printed(pipeline_, planned_, planned_on, {});
  feed(printed, live);
  EXPECT_THAT(printed.replicas(), ElementsAre(testing::Ge(10), testing::Ge(10)));
  Tuner by_ratio(pipeline_, planned_, planned_on, {.rates_as_printed = false});
  tick_ = at(1000);
  feed(by_ratio, live);
  EXPECT_THAT(by_ratio.replicas(), ElementsAre(3, 3));
}

// A stage that one replica serves ten times over needs no more at five times the rate.
TEST_F(TunerTest, KnowsWhatAReplicaCanTake) {
  const PlannedPipeline pipeline = chain({{linear_kind("cpu", 1, ms(0), Duration::microseconds(506), 1)},
                                          {linear_kind("cpu", 1, ms(0), Duration::microseconds(1127), 1)}});
  const Configuration planned{{{0, 1, 1}, {0, 1, 1}}};
  const QueryTrace trace = QueryTrace::draw(pipeline, gamma_arrivals(28, 1, Duration::seconds(120), 1), 1);
  TuningPlan plan = tuning_plan(pipeline, planned, trace);
  plan.goal = {ms(100)};
  const std::vector<Duration> live = gamma_arrivals(150, 1, Duration::seconds(120), 2);
  Tuner tuner(plan, TunerOptions::by_ratio());
  EXPECT_EQ(feed(tuner, live), 0);
  EXPECT_THAT(tuner.replicas(), ElementsAre(1, 1));
  TunerOptions by_rho = TunerOptions::by_ratio();
  by_rho.knows_capacity = false;
  Tuner unknowing(plan, by_rho);
  tick_ = at(1000);
  feed(unknowing, live);
  EXPECT_THAT(unknowing.replicas(), ElementsAre(testing::Ge(5), testing::Ge(5)));
}

// Judged by the estimator on arrivals that the tuner has not seen.
TEST_F(TunerTest, WhatItKnowsOfCapacityIsEnough) {
  const uint64_t first = fresh_seed();
  for (uint64_t seed = first; seed < first + 10; ++seed) {
    Random random(seed);
    const auto kind = [&] {
      return linear_kind("cpu", 1, Duration::from_milliseconds(4 * random.uniform()),
                         Duration::from_milliseconds(1 + 8 * random.uniform()), 8);
    };
    const PlannedPipeline pipeline = chain({{kind()}, {kind()}});
    const LatencyGoal goal{service_time(pipeline, fastest_configuration(pipeline)) * 5};
    const double rate = 10 + 50 * random.uniform();
    const double more = 2 + 4 * random.uniform();
    const QueryTrace trace = QueryTrace::draw(pipeline, gamma_arrivals(rate, 1, Duration::seconds(120), seed), seed);
    const auto planned = plan_pipeline(pipeline, trace, goal);
    ASSERT_TRUE(planned.ok()) << "seed " << seed;
    TuningPlan plan = tuning_plan(pipeline, planned->configuration, trace);
    plan.goal = goal;
    Tuner tuner(plan, TunerOptions::by_ratio());
    tick_ = at(1000);
    feed(tuner, gamma_arrivals(rate * more, 1, Duration::seconds(120), seed + 1));
    Configuration tuned = planned->configuration;
    for (size_t i = 0; i < tuned.stages.size(); ++i) tuned.stages[i].replicas = tuner.replicas()[i];
    const QueryTrace fresh =
        QueryTrace::draw(pipeline, gamma_arrivals(rate * more, 1, Duration::seconds(120), seed + 2), seed);
    EXPECT_TRUE(Estimator(pipeline, fresh, goal).feasible(tuned))
        << "seed " << seed << ": " << tuned.stages[0].replicas << " and " << tuned.stages[1].replicas;
  }
}

TEST_F(TunerTest, RemovesReplicasOnceNothingHasChangedForAWhile) {
  Tuner tuner(pipeline_, planned_, planned_on_, {});
  feed(tuner, even_arrivals(50, Duration(), Duration::seconds(60)));
  feed(tuner, even_arrivals(200, Duration::seconds(60), Duration::seconds(70)));
  EXPECT_THAT(tuner.replicas(), ElementsAre(10, 10));  // up to 5 in 20 ms: 250 * 0.01 / 0.25
  feed(tuner, even_arrivals(50, Duration::seconds(70), Duration::seconds(75)));
  EXPECT_THAT(tuner.replicas(), ElementsAre(10, 10));
  // 15 s after the change, the busiest of the last 30 s is the spike; by the least rho, the second
  // stage needs 200 * 0.005 / 0.125.
  feed(tuner, even_arrivals(50, Duration::seconds(75), Duration::seconds(99)));
  EXPECT_THAT(tuner.replicas(), ElementsAre(10, 8));
  // From 100 s on it is 50 queries per second, for which 4 and 2 are enough; but of the last
  // 41 s it is 85, which is above the envelope.
  feed(tuner, even_arrivals(50, Duration::seconds(99), Duration::seconds(107)));
  EXPECT_THAT(tuner.replicas(), ElementsAre(4, 4));
  feed(tuner, even_arrivals(50, Duration::seconds(107), Duration::seconds(160)));
  EXPECT_THAT(tuner.replicas(), ElementsAre(4, 2));
}

TEST_F(TunerTest, EachStageMayGoDownByItsOwnRho) {
  // rho is 0.25 and 0.125; the first stage needs 50 * 0.01 / 0.25 by its own.
  Tuner tuner(pipeline_, planned_, planned_on_, {.down_by_least_rho = false});
  feed(tuner, even_arrivals(50, Duration(), Duration::seconds(60)));
  feed(tuner, even_arrivals(200, Duration::seconds(60), Duration::seconds(70)));
  feed(tuner, even_arrivals(50, Duration::seconds(70), Duration::seconds(160)));
  EXPECT_THAT(tuner.replicas(), ElementsAre(2, 2));
}

TEST_F(TunerTest, WithoutArrivalsOneReplicaOfEachStageIsLeft) {
  Tuner tuner(pipeline_, planned_, planned_on_, {});
  feed(tuner, even_arrivals(50, Duration(), Duration::seconds(40)));
  for (; tick_ < at(120'000); tick_ += Duration::seconds(1)) tuner.tick(tick_);
  EXPECT_THAT(tuner.replicas(), ElementsAre(1, 1));
}

// As printed, what the plan needs is not there again before more comes than it was made for.
TEST_F(TunerTest, ReplicasMayRiseToThePlanAfterAQuietTime) {
  for (const bool rises : {false, true}) {
    Tuner tuner(pipeline_, planned_, planned_on_, {.down_by_least_rho = false, .rises_to_plan = rises});
    tick_ = at(1000);
    feed(tuner, even_arrivals(50, Duration(), Duration::seconds(40)));
    feed(tuner, even_arrivals(5, Duration::seconds(40), Duration::seconds(120)));
    EXPECT_THAT(tuner.replicas(), ElementsAre(1, 1));
    feed(tuner, even_arrivals(50, Duration::seconds(120), Duration::seconds(125)));
    EXPECT_THAT(tuner.replicas(), rises ? ElementsAre(2, 2) : ElementsAre(1, 1));
    feed(tuner, even_arrivals(50, Duration::seconds(125), Duration::seconds(200)));
    EXPECT_THAT(tuner.replicas(), rises ? ElementsAre(2, 2) : ElementsAre(1, 1));
  }
}

TEST_F(TunerTest, ReplanMeetsTheLastMinuteWithTheFewestReplicas) {
  const LatencyGoal goal{ms(40)};
  const Configuration from{{{0, 1, 1}, {0, 1, 5}}};
  ReplanTuner tuner(pipeline_, from, goal);
  feed(tuner, even_arrivals(50, Duration(), Duration::seconds(70)));
  EXPECT_THAT(tuner.replicas(), ElementsAre(1, 1));
  feed(tuner, even_arrivals(250, Duration::seconds(70), Duration::seconds(75)));
  const Configuration after{{{0, 1, tuner.replicas()[0]}, {0, 1, tuner.replicas()[1]}}};
  EXPECT_GE(after.stages[0].replicas, 3u);
  EXPECT_GE(after.stages[1].replicas, 2u);
  const QueryTrace spike = QueryTrace::draw(pipeline_, even_arrivals(250, Duration(), Duration::seconds(10)), 3);
  EXPECT_TRUE(Estimator(pipeline_, spike, goal).feasible(after));
  feed(tuner, even_arrivals(50, Duration::seconds(75), Duration::seconds(180)));
  EXPECT_THAT(tuner.replicas(), ElementsAre(1, 1));
}

TEST_F(TunerTest, ReplanOfAServerBeginsWithThePlanAndLooksAtTicks) {
  const Configuration from{{{0, 1, 1}, {0, 1, 5}}};
  ReplanOptions options = ReplanOptions::of_server();
  options.replayed_most = 1;
  ReplanTuner tuner(pipeline_, from, LatencyGoal{ms(40)}, options);
  const TimePoint begin = at(1'000'000);
  EXPECT_FALSE(tuner.tick(begin));
  EXPECT_FALSE(tuner.tick(begin + Duration::seconds(14))) << "so soon none goes";
  EXPECT_TRUE(tuner.tick(begin + Duration::seconds(16)));
  EXPECT_THAT(tuner.replicas(), ElementsAre(1, 1));
  for (int i = 0; i < 2500; ++i) EXPECT_FALSE(tuner.arrive(begin + Duration::seconds(16) + ms(2) * i));
  EXPECT_THAT(tuner.replicas(), ElementsAre(1, 1));
  EXPECT_TRUE(tuner.tick(begin + Duration::seconds(21)));
  const double rate = 500;  // by which each stage rises at once, and not by a step of the search
  for (size_t i = 0; i < 2; ++i) EXPECT_GE(tuner.replicas()[i] * throughput(pipeline_.stages[i], {0, 1, 1}), rate) << i;
}

TEST_F(TunerTest, ABoundedReplanGoesOnAtTheNextLook) {
  const LatencyGoal goal{ms(40)};
  const Configuration from{{{0, 1, 1}, {0, 1, 1}}};
  const std::vector<Duration> burst = even_arrivals(2000, Duration::milliseconds(1), ms(101));
  ReplanOptions options;
  options.replayed_most = 1;
  ReplanTuner bounded(pipeline_, from, goal, options);
  ReplanTuner unbounded(pipeline_, from, goal);
  for (const Duration each : burst) {
    bounded.arrive(TimePoint() + each);
    unbounded.arrive(TimePoint() + each);
  }
  unbounded.tick(at(1000));
  ASSERT_THAT(unbounded.replicas(), testing::Not(ElementsAre(1, 1)));
  const uint64_t step = (2 + 2) * burst.size() * 2;  // two estimates, and one more of each stage
  uint32_t changes = 0;
  for (int second = 1; second < 60; ++second) {
    changes += bounded.tick(at(1000 * second));
    EXPECT_LE(bounded.replayed(), options.replayed_most + step);
    if (bounded.replicas() == unbounded.replicas()) break;
  }
  EXPECT_EQ(bounded.replicas(), unbounded.replicas());
  EXPECT_GT(changes, 2u);
}

TEST_F(TunerTest, ATunedRunPaysFromTheDecisionAndServesAfterActivation) {
  class Script final : public ReplicaTuner {
   public:
    bool arrive(TimePoint) override { return false; }
    bool tick(TimePoint now) override {
      if (now == at(1000)) replicas_ = {4, 2};
      if (now == at(3000)) replicas_ = {3, 2};  // one that was not active yet
      if (now == at(8000)) replicas_ = {1, 2};
      return now == at(1000) || now == at(3000) || now == at(8000);
    }
    const std::vector<uint32_t>& replicas() const override { return replicas_; }

   private:
    std::vector<uint32_t> replicas_{2, 2};
  } script;
  const QueryTrace trace = QueryTrace::draw(pipeline_, even_arrivals(50, Duration(), Duration::seconds(11)), 1);
  const TunedRun run = run_tuned(pipeline_, planned_, trace, {ms(100)}, script);
  EXPECT_THAT(run.changes, ElementsAre(ElementsAre(ReplicaChange{ms(6000).nanoseconds(), 3},
                                                   ReplicaChange{ms(8000).nanoseconds(), 1}),
                                       ElementsAre()));
  // Two of the second stage at 4 dollars an hour; of the first 2, 4, 3, 1 at 1 dollar.
  const double seconds = 10.98;
  EXPECT_NEAR(run.dollars * 3600, 8 * seconds + 2 * 1 + 4 * 2 + 3 * 5 + 1 * (seconds - 8), 1e-6);
  EXPECT_EQ(run.estimate.missed, 0u);
  EXPECT_THAT(run.attainment, Each(1));
}

TEST(CoarseGrainedTest, UnitsAreWholePipelines) {
  PlannedPipeline pipeline =
      chain({{linear_kind("cpu", 1, ms(10), ms(10), 16)}, {linear_kind("gpu", 4, ms(5), ms(5), 2)}});
  std::vector<Duration> arrivals = even_arrivals(50, Duration(), Duration::seconds(60));
  append(arrivals, even_arrivals(400, Duration::seconds(60), Duration::seconds(61)));
  const QueryTrace trace = QueryTrace::draw(pipeline, arrivals, 1);
  // Batches of 8 take 90 ms, and 2 at most in the second stage 15 ms; of 16, 170 ms.
  const auto mean = plan_coarse_grained(pipeline, trace, ms(150), CoarseGrainedRate::kMean);
  const auto peak = plan_coarse_grained(pipeline, trace, ms(150), CoarseGrainedRate::kPeak);
  ASSERT_TRUE(mean.ok() && peak.ok());
  EXPECT_NEAR(mean->unit_throughput, 8 / 0.090, 1e-6);
  EXPECT_EQ(mean->configuration, (Configuration{{{0, 8, 1}, {0, 2, 1}}}));
  EXPECT_EQ(peak->configuration, (Configuration{{{0, 8, 5}, {0, 2, 5}}}));
  const auto one_batch =
      plan_coarse_grained(pipeline, trace, ms(150), CoarseGrainedRate::kPeak, CoarseGrainedUnit::kOneBatch);
  ASSERT_TRUE(one_batch.ok());
  EXPECT_NEAR(one_batch->unit_throughput, 8 / 0.105, 1e-6);
  EXPECT_EQ(one_batch->configuration, (Configuration{{{0, 8, 6}, {0, 2, 6}}}));
  EXPECT_THAT(plan_coarse_grained(pipeline, trace, ms(29), CoarseGrainedRate::kMean).status().message(),
              HasSubstr("is below the service time"));
}

TEST(CoarseGrainedTest, TheTunerFollowsTheRateAndWaitsBeforeUnitsGo) {
  const CoarseGrainedPlan plan{{{{0, 8, 1}, {0, 8, 1}}}, 100};
  CoarseGrainedTuner tuner(plan);
  const auto second = [&](int64_t i, int arrivals) {
    for (int n = 0; n < arrivals; ++n) tuner.arrive(at(1000 * i - 1));
    return tuner.tick(at(1000 * i));
  };
  EXPECT_FALSE(second(1, 100));
  EXPECT_TRUE(second(2, 250));
  EXPECT_THAT(tuner.replicas(), ElementsAre(3, 3));
  int64_t i = 3;
  for (; i <= 122; ++i) EXPECT_FALSE(second(i, 50)) << i;
  EXPECT_TRUE(second(i, 50));
  EXPECT_THAT(tuner.replicas(), ElementsAre(1, 1));
}

// A stage that all visit and takes 10 ms, and one that half of them visit and takes 40 ms.
PlannedPipeline half_visited() {
  PlannedPipeline pipeline =
      chain({{linear_kind("cpu", 3600, ms(0), ms(10), 1)}, {linear_kind("cpu", 0, ms(0), ms(40), 1)}});
  pipeline.stages[1].probability = 0.5;
  pipeline.set_scale_factors();
  pipeline.stages[1].scale_factor = 0.5;
  return pipeline;
}

TEST(RateTunerTest, FollowsTheRateOfEachInterval) {
  const PlannedPipeline pipeline = half_visited();
  RateTuner tuner(pipeline, plan_for_mean(pipeline, 90), RateTunerOptions::ds2());
  EXPECT_THAT(tuner.replicas(), ElementsAre(1, 2));
  const auto play = [&](int64_t begin, double rate) {
    for (const Duration at : even_arrivals(rate, Duration::seconds(begin), Duration::seconds(begin + 30))) {
      EXPECT_FALSE(tuner.arrive(TimePoint() + at));
    }
    EXPECT_FALSE(tuner.tick(TimePoint() + Duration::seconds(begin + 29)));
    return tuner.tick(TimePoint() + Duration::seconds(begin + 30));
  };
  EXPECT_FALSE(play(0, 90));
  EXPECT_TRUE(play(30, 210));
  EXPECT_THAT(tuner.replicas(), ElementsAre(3, 5));
  EXPECT_TRUE(play(60, 10));
  EXPECT_THAT(tuner.replicas(), Each(1));
}

TEST(RateTunerTest, AReplicaGoesOnceItWasNotNeededForAWhile) {
  const PlannedPipeline pipeline = half_visited();
  RateTuner tuner(pipeline, plan_for_mean(pipeline, 190), {.wait = Duration::seconds(20)});
  EXPECT_THAT(tuner.replicas(), ElementsAre(2, 4));
  for (int64_t second = 1; second < 20; ++second) EXPECT_FALSE(tuner.tick(TimePoint() + Duration::seconds(second)));
  EXPECT_TRUE(tuner.tick(TimePoint() + Duration::seconds(20)));
  EXPECT_THAT(tuner.replicas(), Each(1));
}

// Adds a replica of each stage at the first tick.
class OneMore final : public ReplicaTuner {
 public:
  bool arrive(TimePoint) override { return false; }
  bool tick(TimePoint) override { return std::exchange(first_, false); }
  const std::vector<uint32_t>& replicas() const override { return replicas_; }

 private:
  bool first_ = true;
  std::vector<uint32_t> replicas_{2};
};

TEST(TunedRunTest, AReconfigurationMayStopAllStages) {
  const PlannedPipeline pipeline = chain({{linear_kind("cpu", 1, ms(0), ms(600), 1)}});
  const QueryTrace trace = QueryTrace::draw(pipeline, std::vector<Duration>{ms(500), ms(1100), ms(1100), ms(9000)}, 1);
  OneMore tuner;
  const TunedRun run = run_tuned(pipeline, {{{0, 1, 1}}}, trace, {ms(1000)}, tuner, {.halt = Duration::seconds(3)});
  // What runs at 1 s goes on; the next two wait until 4 s, and go at once.
  EXPECT_EQ(run.estimate.longest, ms(4600 - 1100));
  EXPECT_EQ(run.estimate.missed, 2u);
  EXPECT_EQ(run.estimate.p50, ms(600));
}

}  // namespace
}  // namespace foliot
