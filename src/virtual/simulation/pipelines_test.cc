// Pipelines under faults: each run ends once, after its visits, none that is late counts as
// answered (virtual/world/checker.h), and most of what could still be met is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

#include "control/policies/registry.h"
#include "foundation/base/test_time.h"
#include "virtual/simulation/simulation.h"

namespace foliot {
namespace {

// On three devices, of which each holds some of the models.
SimulationReport run(const RegisteredPolicy& policy, uint64_t seed, RandomFaults faults, const Workload& workload) {
  SimulationOptions options{.policy = policy.name,
                            .make_policy = policy.make,
                            .controller = {},
                            .devices = 3,
                            .page_cache_bytes = uint64_t{32} * (16 << 20),
                            .seed = seed,
                            .duration = ms(1500),
                            .warm_up = ms(200),
                            .preload = true};
  options.random_faults = faults;
  auto report = simulate(options, workload, ProfileTable::v100());
  EXPECT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->proposals_rejected, 0u);
  return *std::move(report);
}

// A stage, two branches of which one is visited by some runs, and a stage that joins them.
SimulationReport run(const RegisteredPolicy& policy, uint64_t seed, RandomFaults faults, double rate = 300) {
  const Workload workload{
      .groups = {{.name = "first", .profile = "resnet18"},
                 {.name = "left", .profile = "resnet50"},
                 {.name = "right", .profile = "inceptionv3"},
                 {.name = "last", .profile = "resnet18"},
                 {.name = "alone", .profile = "resnet50", .slo = ms(50)}},
      .pipelines = {{.name = "street",
                     .slo = ms(100),
                     .stages = {{.name = "first", .models = "first"},
                                {.name = "left", .models = "left", .after = {"first"}, .share = 0.4},
                                {.name = "right", .models = "right", .after = {"first"}},
                                {.name = "last", .models = "last", .after = {"right", "first"}}}}},
      .streams = {{.name = "runs", .models = {}, .pipeline = "street", .arrivals = {.rate = rate}},
                  {.name = "others", .models = {"alone"}, .arrivals = {.rate = 75}}}};
  return run(policy, seed, faults, workload);
}

class PipelinesTest : public testing::TestWithParam<std::string> {
 protected:
  static RegisteredPolicy policy() { return find_policy(GetParam()).value(); }
};

// `FOLIOT_PIPELINE_SEEDS` of them, by default twenty.
TEST_P(PipelinesTest, RunsEndOnceWhateverFails) {
  const char* given = std::getenv("FOLIOT_PIPELINE_SEEDS");
  const uint64_t seeds = given != nullptr ? std::strtoull(given, nullptr, 10) : 20;
  uint64_t met = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const SimulationReport report = run(policy(), seed, {.count = 3, .length_min = ms(20), .length_max = ms(400)});
    met += report.pipelines.front().good;
  }
  EXPECT_GT(met, 0u);
}

TEST_P(PipelinesTest, EqualSeedsGiveEqualRuns) {
  const auto hash = [](uint64_t seed) { return run(policy(), seed, {.count = 2, .length_max = ms(300)}).event_hash; };
  EXPECT_EQ(hash(3), hash(3));
  EXPECT_NE(hash(3), hash(4));
}

INSTANTIATE_TEST_SUITE_P(Policies, PipelinesTest, testing::ValuesIn(policy_names()),
                         [](const auto& parameter) { return parameter.param; });

// A detector of up to four elements, of each of which one stage makes a crop and another a class, under a
// condition; and a stage that joins what they made.
SimulationReport run_with_elements(const RegisteredPolicy& policy, uint64_t seed, RandomFaults faults,
                                   double rate = 200) {
  const Workload workload{
      .groups = {{.name = "detect", .profile = "resnet18"},
                 {.name = "crop", .profile = "resnet18"},
                 {.name = "classify", .profile = "resnet50"},
                 {.name = "last", .profile = "resnet18"},
                 {.name = "alone", .profile = "resnet50", .slo = ms(50)}},
      .pipelines = {{.name = "street",
                     .slo = ms(100),
                     .stages = {{.name = "detect", .models = "detect", .elements = {2, 3, 2, 1, 1}},
                                {.name = "crop", .models = "crop", .after = {"detect"}, .for_each = "detect"},
                                {.name = "classify",
                                 .models = "classify",
                                 .after = {"detect", "crop"},
                                 .share = 0.7,
                                 .for_each = "detect"},
                                {.name = "last", .models = "last", .first_of = {"classify", "crop"}}}}},
      .streams = {{.name = "runs", .models = {}, .pipeline = "street", .arrivals = {.rate = rate}},
                  {.name = "others", .models = {"alone"}, .arrivals = {.rate = 75}}}};
  return run(policy, seed, faults, workload);
}

// `FOLIOT_ELEMENT_SEEDS` of them, by default twenty.
TEST_P(PipelinesTest, ElementsAreVisitedOnceEachWhateverFails) {
  const char* given = std::getenv("FOLIOT_ELEMENT_SEEDS");
  const uint64_t seeds = given != nullptr ? std::strtoull(given, nullptr, 10) : 20;
  uint64_t met = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const SimulationReport report =
        run_with_elements(policy(), seed, {.count = 3, .length_min = ms(20), .length_max = ms(400)});
    met += report.pipelines.front().good;
  }
  EXPECT_GT(met, 0u);
}

TEST(SimulatedPipelineTest, RunsVisitAStageForEachElementThatIsDrawn) {
  const SimulationReport report = run_with_elements(find_policy("foliot").value(), 1, {});
  const RequestTally& runs = report.pipelines.front();
  ASSERT_GT(runs.good, 150u);
  EXPECT_EQ(runs.good, runs.offered);
  const auto visits = [&](size_t group) { return static_cast<double>(report.groups[group].offered); };
  const double mean = (3 * 1 + 2 * 2 + 1 * 3 + 1 * 4) / 9.0;
  EXPECT_NEAR(visits(1) / visits(0), mean, 0.2);
  EXPECT_NEAR(visits(2) / visits(1), 0.7, 0.1);
  EXPECT_NEAR(visits(3) / visits(0), 1, 0.03);
}

TEST(SimulatedPipelineTest, AStageMayTakeTheFirstOfItsSourcesThatWasVisited) {
  Workload workload{.groups = {{.name = "first", .profile = "resnet18"},
                               {.name = "left", .profile = "resnet50"},
                               {.name = "last", .profile = "resnet18"}},
                    .pipelines = {{.name = "street",
                                   .stages = {{.name = "first", .models = "first"},
                                              {.name = "left", .models = "left", .after = {"first"}, .share = 0.4},
                                              {.name = "last", .models = "last", .first_of = {"left", "first"}}}}},
                    .streams = {{.name = "runs", .models = {}, .pipeline = "street", .arrivals = {.rate = 100}}}};
  const RegisteredPolicy policy = find_policy("foliot").value();
  const auto report = simulate({.policy = policy.name,
                                .make_policy = policy.make,
                                .controller = {},
                                .devices = 3,
                                .seed = 1,
                                .duration = ms(3000),
                                .preload = true},
                               workload, ProfileTable::v100());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->groups[2].good, report->pipelines[0].offered);
  const auto runs = static_cast<double>(report->pipelines[0].offered);
  EXPECT_NEAR(static_cast<double>(report->groups[1].good) / runs, 0.4, 0.1);
  // Where it is visited, the last stage waits for it.
  EXPECT_GT(report->pipelines[0].latency.max(), ms(5));
}

// Of eight runs two visit both branches, and one has three elements, one none, the others one.
TEST(SimulatedPipelineTest, ReplaysWhatRecordedRunsVisited) {
  Workload workload{
      .groups = {{.name = "detect", .profile = "resnet18"},
                 {.name = "classify", .profile = "resnet18"},
                 {.name = "extra", .profile = "resnet50"}},
      .pipelines = {{.name = "street",
                     .stages = {{.name = "detect", .models = "detect", .elements = {1, 1, 1, 1}},
                                {.name = "classify", .models = "classify", .after = {"detect"}, .for_each = "detect"},
                                {.name = "extra", .models = "extra", .after = {"detect"}, .share = 0.5}}}},
      .streams = {{.name = "runs", .models = {}, .pipeline = "street", .arrivals = {.kind = ArrivalKind::kReplay}}}};
  Stream& stream = workload.streams[0];
  for (uint32_t i = 0; i < 8; ++i) {
    stream.arrivals.instants.push_back(ms(20) * (i + 1));
    const bool both = i == 2 || i == 5;
    const auto elements = static_cast<uint8_t>(i == 0 ? 3 : i == 1 ? 0 : 1);
    stream.recorded.emplace_back(RecordedRun{.visited = both ? 0b111u : 0b011u, .elements = {elements, 0, 0}});
  }
  const auto visits = [&](uint64_t seed) {
    SimulationOptions options{.policy = "foliot",
                              .make_policy = find_policy("foliot")->make,
                              .controller = {},
                              .seed = seed,
                              .duration = ms(1000),
                              .preload = true};
    const auto report = simulate(options, workload, ProfileTable::v100());
    EXPECT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->pipelines[0].good, 8u);
    return std::pair(report->groups[1].offered, report->groups[2].offered);
  };
  EXPECT_EQ(visits(1), std::pair(uint64_t{9}, uint64_t{2}));
  EXPECT_EQ(visits(2), std::pair(uint64_t{9}, uint64_t{2}));
  stream.recorded.pop_back();
  EXPECT_THAT(workload.check().message(), testing::HasSubstr("recorded runs are 7, of 8 instants"));
  stream.recorded.emplace_back(RecordedRun{.visited = 1, .elements = {4, 0, 0}});
  EXPECT_THAT(workload.check().message(), testing::HasSubstr("4 elements of stage 'detect', which has 3 at most"));
}

TEST(PipelineAdmissionTest, UnderOverloadWhatIsAnsweredDoesNotFall) {
  const auto answered = [](double rate) {
    const RegisteredPolicy policy = find_policy("foliot").value();
    const SimulationReport report = run(policy, 1, {}, rate);
    return report.pipelines.front().good;
  };
  const uint64_t at_capacity = answered(800);
  EXPECT_GT(answered(1400), at_capacity * 8 / 10);
  EXPECT_GT(answered(2800), at_capacity * 8 / 10);
}

TEST(SimulatedPipelineTest, RunsVisitAStageUnderAShareSoOften) {
  const SimulationReport report = run(find_policy("foliot").value(), 1, {});
  const RequestTally& runs = report.pipelines.front();
  ASSERT_GT(runs.good, 200u);
  EXPECT_EQ(runs.good, runs.offered);
  const auto visits = [&](size_t group) { return static_cast<double>(report.groups[group].offered); };
  EXPECT_NEAR(visits(1) / visits(0), 0.4, 0.1);
  EXPECT_NEAR(visits(2) / visits(0), 1, 0.03);
  EXPECT_NEAR(visits(3) / visits(0), 1, 0.03);
  // Visits are no requests of their own.
  EXPECT_EQ(report.all.offered, runs.offered + report.groups[4].offered);
}

}  // namespace
}  // namespace foliot
