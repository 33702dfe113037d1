#include "planning/pipelines/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "foundation/base/test_time.h"
#include "planning/pipelines/test_pipeline.h"
#include "planning/pipelines/tuner.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class PlanFileTest : public testing::Test {
 protected:
  PlanFileTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "animals");
  }
  SavedPlan read(const std::string& text) {
    std::ofstream(file_) << text;
    return read_plan_file("animals", file_);
  }
  std::string error(std::string text, const std::string& old = "", const std::string& with = "") {
    if (!old.empty()) text.replace(text.find(old), old.size(), with);
    return read(text).status.message();
  }

  const fs::path folder_ =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + "_foliot_plans";
  const fs::path file_ = folder_ / "animals" / "plan.toml";
};

Duration us(int64_t microseconds) { return Duration::microseconds(microseconds); }

constexpr const char* kPlan = R"(pipeline = "animals"
rate = 140.05
[[stage]]
name = "fine"
model = "resnet"
kind = "cpu:4"
batch = 2
replicas = 3
visited = 0.3
throughput = 111
[[window]]
length = "29ms"
queries = 19
[[window]]
length = "60s"
queries = 8000
)";

// A plan of a pipeline and its trace, of which numbers have many digits.
TuningPlan awkward_plan() {
  PlannedPipeline pipeline =
      chain({{linear_kind("cpu", 1, us(1234), us(7777), 4)}, {linear_kind("gpu", 4, us(3), us(7), 8)}});
  pipeline.name = "animals";
  pipeline.stages[1].scale_factor = pipeline.stages[1].probability = 1.0 / 3;
  const QueryTrace trace = QueryTrace::draw(pipeline, gamma_arrivals(77, 2, Duration::seconds(30), 5), 1);
  TuningPlan plan = tuning_plan(pipeline, {{{0, 2, 3}, {0, 8, 1}}}, trace);
  plan.content = "5f0c";
  plan.goal = {us(149999), 0.985};
  plan.stages[0].model = "animals.decode";
  plan.stages[1].model = "resnet";
  return plan;
}

TEST_F(PlanFileTest, WhatIsWrittenIsReadAsTheSame) {
  const TuningPlan plan = awkward_plan();
  const SavedPlan saved = read(plan_file_text(plan));
  ASSERT_TRUE(saved.status.ok()) << saved.status.message();
  EXPECT_EQ(saved.plan, plan);
  EXPECT_TRUE(saved.plan.can_estimate());
  EXPECT_FALSE(read(kPlan).plan.can_estimate());
}

TEST_F(PlanFileTest, NamesMayHaveAnyCharacter) {
  TuningPlan plan = awkward_plan();
  plan.pipeline = "two \"animals\" \\";
  plan.stages[0].kind = "\"";
  plan.stages[1].model = "res\\net\n";
  std::ofstream(file_) << plan_file_text(plan);
  const SavedPlan saved = read_plan_file(plan.pipeline, file_);
  ASSERT_TRUE(saved.status.ok()) << saved.status.message();
  EXPECT_EQ(saved.plan, plan);
}

TEST_F(PlanFileTest, ReadsStagesAndWindows) {
  const SavedPlan saved = read(kPlan);
  ASSERT_TRUE(saved.status.ok()) << saved.status.message();
  const TuningPlan expected{.pipeline = "animals",
                            .rate = 140.05,
                            .envelope = {{ms(29), Duration::seconds(60)}, {19, 8000}},
                            .stages = {{.name = "fine",
                                        .model = "resnet",
                                        .kind = "cpu:4",
                                        .batch = 2,
                                        .replicas = 3,
                                        .scale_factor = 0.3,
                                        .throughput = 111}}};
  EXPECT_EQ(saved.plan, expected);
}

TEST_F(PlanFileTest, ErrorsNameFileAndLine) {
  EXPECT_THAT(error(""), HasSubstr("plan.toml:1: 'rate' must be above 0"));
  EXPECT_THAT(error("rate = "), HasSubstr("plan.toml"));
  EXPECT_THAT(error(kPlan, "140.05", "-1"), HasSubstr("plan.toml:2: 'rate' must be above 0"));
  EXPECT_THAT(error(kPlan, "140.05", "inf"), HasSubstr("plan.toml:2: 'rate' must be"));
  EXPECT_THAT(error(kPlan, "\"animals\"", "\"birds\""),
              HasSubstr("plan.toml:1: 'pipeline' is 'birds', and this is the plan of 'animals'"));
  EXPECT_THAT(error(kPlan, "replicas = 3", "replicas = 0"), HasSubstr("plan.toml:8: 'replicas' must be"));
  EXPECT_THAT(error(kPlan, "replicas = 3", "replicas = 65537"), HasSubstr("from 1 to 65536"));
  EXPECT_THAT(error(kPlan, "visited = 0.3", "visited = 256"),
              HasSubstr("plan.toml:9: 'visited' is 256; a query has at most 255 visits"));
  EXPECT_THAT(error(kPlan, "throughput = 111\n", ""), HasSubstr("plan.toml:3: "));
  EXPECT_THAT(error(kPlan, "kind = \"cpu:4\"\n", ""), HasSubstr("plan.toml:3: a stage needs 'kind'"));
  EXPECT_THAT(error(kPlan, "batch", "batches"), HasSubstr("plan.toml:3: a stage needs 'batch'"));
  EXPECT_THAT(error(kPlan, "rate = ", "deadline = \"1s\"\nrate = "), HasSubstr("plan.toml:2: unknown key 'deadline'"));
  EXPECT_THAT(error(kPlan, "rate = ", "slo = \"0s\"\nrate = "), HasSubstr("plan.toml:2: 'slo' must be above 0"));
  EXPECT_THAT(error(kPlan, "rate = ", "attainment = 2\nrate = "), HasSubstr("plan.toml:2: 'attainment'"));
  const auto measured = [&](const std::string& keys) { return error(kPlan, "visited", keys + "\nvisited"); };
  EXPECT_THAT(measured("price = -1"), HasSubstr("plan.toml:9: 'price'"));
  EXPECT_THAT(measured("durations = [\"1ms\"]"), HasSubstr("plan.toml:9: 'durations'"));
  EXPECT_THAT(measured("durations = [\"2ms\", \"1ms\"]\nbatch_sizes = [1, 2]"), HasSubstr("plan.toml:9: 'durations'"));
  EXPECT_THAT(measured("batch_sizes = [1]\ndurations = [\"2ms\"]"),
              HasSubstr("plan.toml:9: 'batch_sizes' end below 'batch', which is 2"));
  EXPECT_THAT(error(kPlan, "29ms", "61s"), HasSubstr("plan.toml:12: 'length' must be at most a minute"));
  EXPECT_THAT(error(kPlan, "29ms", "60s"), HasSubstr("plan.toml:15: 'length' must be above that of the window before"));
  EXPECT_THAT(error(kPlan, "8000", "18"), HasSubstr("plan.toml:16: 'queries' must not be below"));
  EXPECT_THAT(error(kPlan, "queries = 19", "queries = 0"), HasSubstr("plan.toml:13: 'queries'"));
  const std::string stage = std::string(kPlan).substr(std::string(kPlan).find("[[stage]]"));
  EXPECT_THAT(error(std::string(kPlan) + stage), HasSubstr("plan.toml:18: 'name' is 'fine', which is a stage above"));
  EXPECT_THAT(error("pipeline = \"animals\"\nrate = 1\n"), HasSubstr("has 0 [[stage]], and must have 1 to 32"));
  EXPECT_THAT(error(std::string(kPlan).substr(0, std::string(kPlan).find("[[window]]"))),
              HasSubstr("has 0 [[window]], and must have 1 to 64"));
}

TEST_F(PlanFileTest, AFolderHasPlansByTheNamesOfPipelines) {
  std::ofstream(file_) << kPlan;
  for (const char* other : {"birds", "empty", ".hidden"}) fs::create_directories(folder_ / other);
  std::ofstream(folder_ / "birds" / "plan.toml") << kPlan;
  std::ofstream(folder_ / ".hidden" / "plan.toml") << kPlan;
  const auto plans = scan_plans(folder_);
  ASSERT_TRUE(plans.ok());
  ASSERT_EQ(plans->size(), 2u);
  EXPECT_TRUE(plans->at("animals").status.ok());
  EXPECT_THAT(plans->at("birds").status.message(), HasSubstr("this is the plan of 'birds'"));
  EXPECT_THAT(scan_plans(folder_ / "absent").status().message(), HasSubstr("foliot_plans/absent"));
}

TEST(TuningPlanTest, AnEstimateOfItIsThatOfThePlan) {
  PlannedPipeline pipeline =
      chain({{linear_kind("cpu", 1, us(1000), us(7000), 8), linear_kind("gpu", 4, us(300), us(700), 4)},
             {linear_kind("cpu", 1, us(1000), us(2000), 8)}});
  pipeline.stages[1].scale_factor = pipeline.stages[1].probability = 0.4;
  const QueryTrace trace = QueryTrace::draw(pipeline, gamma_arrivals(150, 2, Duration::seconds(30), 5), 1);
  const Configuration planned{{{1, 3, 2}, {0, 8, 1}}};
  TuningPlan plan = tuning_plan(pipeline, planned, trace);
  EXPECT_EQ(plan.stages[0].batch_sizes, (std::vector<uint32_t>{1, 2, 4})) << "a batch of 3 takes as long as one of 4";
  EXPECT_FALSE(plan.can_estimate());
  plan.goal = {ms(100)};
  ASSERT_TRUE(plan.can_estimate());
  const std::vector<StageEdges> edges{{}, {{0}, {{0}}}};
  const PlannedPipeline again = estimate_pipeline(plan, edges);
  EXPECT_NEAR(again.stages[1].probability, 0.4, 0.01);
  EXPECT_EQ(estimate_configuration(plan).stages[0], (StageConfiguration{0, 3, 2}));
  const Estimate of_plan = Estimator(again, trace, plan.goal).estimate(estimate_configuration(plan));
  const Estimate of_pipeline = Estimator(pipeline, trace, plan.goal).estimate(planned);
  EXPECT_EQ(of_plan.p99, of_pipeline.p99);
  EXPECT_EQ(of_plan.missed, of_pipeline.missed);
}

}  // namespace
}  // namespace foliot
