#include "planning/pipelines/pipeline_tuners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using Replicas = PipelineTuners::StageReplicas;

// Planned for 50 queries per second that come evenly; a replica of each stage takes 50, and half of the queries visit
// the second.
SavedPlan plan_of(const std::string& name) {
  TuningPlan plan{.pipeline = name, .content = "c1", .rate = 50, .envelope = {}, .stages = {}};
  for (Duration window = ms(100); window < Duration::seconds(60); window = window * 2) {
    plan.envelope.windows.push_back(window);
    plan.envelope.most.push_back(static_cast<uint32_t>(50 * window.to_seconds()) + 1);
  }
  plan.stages = {
      {.name = "first", .model = "m1", .kind = "cpu", .replicas = 2, .throughput = 50},
      {.name = "second", .model = "m2", .kind = "gpu", .replicas = 1, .scale_factor = 0.5, .throughput = 50}};
  return {.file = name + "/plan.toml", .status = Status(), .plan = std::move(plan)};
}

TunedPipeline served(uint32_t id, const std::string& name = "p", uint32_t first_model = 0,
                     std::vector<std::string> stages = {"first", "second"}) {
  PipelineInfo info{.id = PipelineId(id), .name = name, .content = "c1", .stages = {}, .outputs = {}};
  for (uint32_t i = 0; i < stages.size(); ++i) {
    auto model = std::make_shared<ModelInfo>();
    model->id = ModelId(first_model + i);
    model->name = "m" + std::to_string(i + 1);
    info.stages.push_back({.name = stages[i], .model = std::move(model)});
  }
  return TunedPipeline(info);
}

class PipelineTunersTest : public testing::Test {
 protected:
  void set_plan(SavedPlan plan) {
    std::map<std::string, SavedPlan> plans;
    plans.emplace(plan.plan.pipeline, std::move(plan));
    tuners_.set_plans(std::move(plans));
  }
  // From the end of what came before on, with a step every 100 ms. Returns the last.
  PipelineTuners::Step play(uint32_t pipeline, int64_t rate, Duration length) {
    const TimePoint end = now_ + length;
    for (int64_t i = 0; now_ < end; ++i) {
      now_ += Duration::seconds(1) / rate;
      tuners_.arrive(PipelineId(pipeline), now_);
      if (now_ - stepped_ >= ms(100)) step();
    }
    return step();
  }
  PipelineTuners::Step idle(Duration length) {
    for (const TimePoint end = now_ + length; now_ < end; now_ += ms(100)) step();
    return step();
  }
  PipelineTuners::Step step() {
    stepped_ = now_;
    return tuners_.step(up_, now_);
  }

  PipelineTuners tuners_{TunerOptions::by_ratio()};
  std::map<std::string, uint32_t> up_{{"cpu", 8}, {"gpu", 8}};
  TimePoint now_ = at(1'000'000);
  TimePoint stepped_ = now_;
};

TEST_F(PipelineTunersTest, ReplicasRiseWithTheArrivalsAndFallAfterThem) {
  set_plan(plan_of("p"));
  EXPECT_THAT(step().targets, IsEmpty()) << "it is not served";
  tuners_.add(served(1));
  const std::map<ModelId, ModelTarget> planned{{ModelId(0), {.copies_least = 2, .kinds = {"cpu"}}},
                                               {ModelId(1), {.copies_least = 1, .kinds = {"gpu"}}}};
  EXPECT_EQ(step().targets, planned);
  PipelineTuners::Step steady = play(1, 50, Duration::seconds(60));
  EXPECT_EQ(steady.targets, planned);
  EXPECT_THAT(steady.devices, ElementsAre(Pair("cpu", 2), Pair("gpu", 1)));
  EXPECT_THAT(steady.replicas, ElementsAre(Replicas{"p", "first", 2, 2}, Replicas{"p", "second", 1, 1}));

  // At three times the rate; seen within a second.
  PipelineTuners::Step risen = play(1, 150, Duration::seconds(1));
  EXPECT_THAT(risen.replicas, ElementsAre(Replicas{"p", "first", 6, 2}, Replicas{"p", "second", 3, 1}));
  EXPECT_EQ(risen.targets.at(ModelId(0)).copies_least, 6u);
  EXPECT_THAT(risen.devices, ElementsAre(Pair("cpu", 6), Pair("gpu", 3)));

  // The spike lies in the last 30 s until it is over for as long, and in the windows of the envelope.
  play(1, 150, Duration::seconds(10));
  EXPECT_EQ(play(1, 50, Duration::seconds(28)).targets, risen.targets);
  const PipelineTuners::Step falling = play(1, 50, Duration::seconds(12));
  EXPECT_LT(falling.targets.at(ModelId(0)).copies_least, 6u);
  EXPECT_GT(falling.targets.at(ModelId(0)).copies_least, 2u);
  EXPECT_EQ(play(1, 50, Duration::seconds(40)).targets, planned);
  // Without any arrivals one replica of each stays.
  EXPECT_THAT(idle(Duration::seconds(60)).replicas,
              ElementsAre(Replicas{"p", "first", 1, 2}, Replicas{"p", "second", 1, 1}));
}

TEST_F(PipelineTunersTest, ATunerGoesOnWhenModelsChange) {
  set_plan(plan_of("p"));
  tuners_.add(served(1));
  play(1, 50, Duration::seconds(10));
  play(1, 150, Duration::seconds(1));
  tuners_.add(served(2, "p", 10));  // before the old one leaves
  EXPECT_EQ(step().targets.at(ModelId(10)).copies_least, 6u);
  tuners_.remove(PipelineId(1));
  const PipelineTuners::Step changed = step();
  ASSERT_THAT(changed.targets, testing::SizeIs(2));
  EXPECT_EQ(changed.targets.at(ModelId(10)).copies_least, 6u);
  EXPECT_EQ(changed.targets.at(ModelId(11)).copies_least, 3u);
  tuners_.remove(PipelineId(2));
  EXPECT_THAT(step().targets, IsEmpty());
}

TEST_F(PipelineTunersTest, AnotherPlanBeginsAnewAndTheSameGoesOn) {
  set_plan(plan_of("p"));
  tuners_.add(served(1));
  play(1, 50, Duration::seconds(10));
  play(1, 150, Duration::seconds(1));
  set_plan(plan_of("p"));
  EXPECT_EQ(step().replicas.front().wanted, 6u);
  SavedPlan other = plan_of("p");
  other.plan.stages[0].replicas = 3;
  set_plan(std::move(other));
  EXPECT_EQ(step().replicas.front().wanted, 3u);
  tuners_.set_plans({});
  EXPECT_THAT(step().targets, IsEmpty());
}

TEST_F(PipelineTunersTest, APlanOfAnotherPipelineIsNoneAndSaysWhy) {
  const auto trouble = [&](SavedPlan plan, std::vector<std::string> stages = {"first", "second"}) {
    set_plan(std::move(plan));
    tuners_.add(served(1, "p", 0, std::move(stages)));
    PipelineTuners::Step step = this->step();
    EXPECT_THAT(step.targets, IsEmpty());
    EXPECT_THAT(step.devices, IsEmpty());
    return step.troubles["p"];
  };
  SavedPlan plan = plan_of("p");
  plan.plan.content = "c2";
  EXPECT_THAT(trouble(plan), HasSubstr("pipeline 'p' is not tuned: p/plan.toml: is a plan of another pipeline.toml"));
  plan = plan_of("p");
  plan.plan.stages[1].model = "m3";
  EXPECT_THAT(trouble(plan), HasSubstr("p/plan.toml: stage 'second' has model 'm3', and that of the pipeline 'm2'"));
  EXPECT_THAT(trouble(plan_of("p"), {"first"}),
              HasSubstr("p/plan.toml: stage 2 is 'second', and that of the pipeline ''"));
  EXPECT_THAT(trouble(plan_of("p"), {"first", "second", "third"}),
              HasSubstr("stage 3 is '', and that of the pipeline 'third'"));
  tuners_.set_plans({});
  plan = plan_of("p");
  plan.status = Status::invalid_argument("p/plan.toml:3: damaged");
  EXPECT_EQ(trouble(plan), "pipeline 'p' is not tuned: p/plan.toml:3: damaged");

  set_plan(plan_of("p"));
  tuners_.add(served(1));
  EXPECT_THAT(step().troubles, IsEmpty());
  EXPECT_THAT(step().targets, testing::SizeIs(2));
  set_plan(plan);
  EXPECT_EQ(step().troubles["p"], "pipeline 'p' keeps the plan that it had: p/plan.toml:3: damaged");
  EXPECT_THAT(step().targets, testing::SizeIs(2));
}

TEST_F(PipelineTunersTest, AModelOfSeveralStagesHasTheCopiesOfAll) {
  std::map<std::string, SavedPlan> plans;
  plans.emplace("p", plan_of("p"));
  plans.emplace("q", plan_of("q"));
  plans.at("q").plan.stages[0].kind = "gpu";
  tuners_.set_plans(std::move(plans));
  tuners_.add(served(1, "p", 0));
  tuners_.add(served(2, "q", 0));
  const std::map<ModelId, ModelTarget> both{{ModelId(0), {.copies_least = 4, .kinds = {"cpu", "gpu"}}},
                                            {ModelId(1), {.copies_least = 2, .kinds = {"gpu"}}}};
  EXPECT_EQ(step().targets, both);
  EXPECT_THAT(step().devices, ElementsAre(Pair("cpu", 2), Pair("gpu", 4)));
}

TEST_F(PipelineTunersTest, WithoutDevicesOfItsKindAModelRunsOnAny) {
  set_plan(plan_of("p"));
  tuners_.add(served(1));
  up_ = {{"cpu", 1}};
  PipelineTuners::Step short_of = step();
  EXPECT_THAT(short_of.shortages["cpu"], HasSubstr("want 2 devices of kind 'cpu', and 1 are up"));
  EXPECT_THAT(short_of.shortages["gpu"], HasSubstr("want 1 devices of kind 'gpu', and 0 are up"));
  EXPECT_THAT(short_of.targets.at(ModelId(0)).kinds, ElementsAre("cpu"));
  EXPECT_THAT(short_of.targets.at(ModelId(1)).kinds, IsEmpty());
}

TEST_F(PipelineTunersTest, WhatIsStampedEarlierCountsAsNow) {
  set_plan(plan_of("p"));
  tuners_.add(served(1));
  step();
  now_ += ms(100);
  step();
  for (int i = 0; i < 40; ++i) tuners_.arrive(PipelineId(1), now_ - ms(50));
  tuners_.arrive(PipelineId(7), now_);  // of none that is served
  EXPECT_GT(step().replicas.front().wanted, 2u);
}

TEST_F(PipelineTunersTest, PrintedIsAnotherTuner) {
  PipelineTuners printed{TunerOptions()};
  std::map<std::string, SavedPlan> plans;
  plans.emplace("p", plan_of("p"));
  plans.at("p").plan.envelope.most.front() = 2;
  for (PipelineTuners* each : {&printed, &tuners_}) {
    each->set_plans(plans);
    each->add(served(1));
    each->step(up_, now_);
    for (int i = 0; i < 3; ++i) each->arrive(PipelineId(1), now_);
  }
  // 3 in place of 2 within 100 ms: a rate of 30 per second, which is below that of the plan; or half as much again.
  EXPECT_EQ(printed.step(up_, now_).replicas.front().wanted, 2u);
  EXPECT_EQ(tuners_.step(up_, now_).replicas.front().wanted, 3u);
}

// With what an estimate takes: 20 ms for a row, 100 ms for both stages.
SavedPlan estimated_plan_of(const std::string& name) {
  SavedPlan saved = plan_of(name);
  saved.plan.goal = {ms(100), 0.99};
  for (TuningPlan::Stage& stage : saved.plan.stages) {
    stage.batch_sizes = {1};
    stage.durations = {ms(20)};
  }
  return saved;
}

TEST_F(PipelineTunersTest, ReplanFollowsTheArrivalsByEstimates) {
  PipelineTuners replan{ReplanOptions::of_server()};
  const auto play = [&](int64_t rate, Duration length) {
    PipelineTuners::Step last;
    for (const TimePoint end = now_ + length; now_ < end;) {
      now_ += Duration::seconds(1) / rate;
      replan.arrive(PipelineId(1), now_);
      if (now_ - stepped_ < ms(100)) continue;
      stepped_ = now_;
      last = replan.step(up_, now_);
    }
    return last.replicas;
  };
  std::map<std::string, SavedPlan> plans;
  plans.emplace("p", estimated_plan_of("p"));
  replan.set_plans(plans);
  replan.add(served(1));
  EXPECT_THAT(play(20, Duration::seconds(10)),
              ElementsAre(Replicas{"p", "first", 2, 2}, Replicas{"p", "second", 1, 1}));
  EXPECT_THAT(play(20, Duration::seconds(10)), ElementsAre(Replicas{"p", "first", 1, 2}, Replicas{"p", "second", 1, 1}))
      << "one is enough for less than planned";
  const std::vector<Replicas> risen = play(150, Duration::seconds(5));
  EXPECT_GE(risen[0].wanted, 3u);
  EXPECT_LE(risen[0].wanted, 5u);
  EXPECT_GE(risen[1].wanted, 2u);
  EXPECT_LE(risen[1].wanted, 4u);
  // While the last minute has the burst.
  EXPECT_GE(play(20, Duration::seconds(40))[0].wanted, 3u);
  EXPECT_EQ(play(20, Duration::seconds(40))[0].wanted, 1u);
  // As many as planned come again.
  EXPECT_EQ(play(50, Duration::seconds(60))[0].wanted, 2u);
}

TEST_F(PipelineTunersTest, WithoutWhatEstimatesTakeReplanGoesByRatio) {
  PipelineTuners replan{ReplanOptions::of_server()};
  PipelineTuners by_ratio{TunerOptions::by_ratio()};
  std::map<std::string, SavedPlan> plans;
  plans.emplace("p", estimated_plan_of("p"));
  plans.at("p").plan.stages[1].batch_sizes.clear();
  for (PipelineTuners* tuners : {&replan, &by_ratio}) {
    tuners->set_plans(plans);
    tuners->add(served(1));
  }
  std::vector<Replicas> risen;
  for (const TimePoint end = now_ + Duration::seconds(10); now_ < end; now_ += ms(5)) {
    replan.arrive(PipelineId(1), now_);
    by_ratio.arrive(PipelineId(1), now_);
    const PipelineTuners::Step step = replan.step(up_, now_);
    ASSERT_THAT(step.troubles, IsEmpty());
    risen = step.replicas;
    ASSERT_EQ(risen, by_ratio.step(up_, now_).replicas);
  }
  EXPECT_GT(risen[0].wanted, risen[0].planned);
  // With all that estimates take, it is tuned by them from then on.
  plans.at("p") = estimated_plan_of("p");
  replan.set_plans(plans);
  EXPECT_THAT(replan.step(up_, now_).troubles, IsEmpty());
}

TEST_F(PipelineTunersTest, PipelinesShareTheWorkOfALook) {
  const auto copies_after_a_burst = [&](uint32_t pipelines) {
    // One and a half steps of the search: two estimates, and one more for each stage, of 100 queries in both stages.
    PipelineTuners replan{ReplanOptions{.replayed_most = 12 * 100, .in_service = true}};
    std::map<std::string, SavedPlan> plans;
    for (const char* name : {"p", "q"}) {
      SavedPlan& saved = plans.emplace(name, estimated_plan_of(name)).first->second;
      // Fewer come than planned, and yet more than the replicas can take.
      saved.plan.rate = 1000;
      for (uint32_t& most : saved.plan.envelope.most) most = 20 * most;
    }
    replan.set_plans(std::move(plans));
    for (uint32_t i = 0; i < pipelines; ++i) replan.add(served(i, i == 0 ? "p" : "q", 10 * i));
    replan.step(up_, now_);
    for (int i = 0; i < 100; ++i) replan.arrive(PipelineId(0), now_ + ms(500));
    const PipelineTuners::Step step = replan.step(up_, now_ + ms(1100));
    return step.replicas[0].wanted + step.replicas[1].wanted;
  };
  EXPECT_GT(copies_after_a_burst(2), 3u);
  EXPECT_GT(copies_after_a_burst(1), copies_after_a_burst(2));
}

}  // namespace
}  // namespace foliot
