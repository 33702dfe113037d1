// The whole cluster in virtual time: production sessions, registration, model changes and
// links over simulated bytes, and all that can go wrong with them. ClusterChecker and the
// nodes check what must hold in each run.
#include "virtual/cluster/cluster_simulation.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/controller/fake_duration_model.h"
#include "control/policies/foliot/foliot_policy.h"
#include "control/policies/overlap/overlap_policy.h"

namespace foliot {
namespace {

constexpr uint32_t kFaults = 16;

// Four ResNet-50 (V100), of which each of three workers holds three.
Workload workload(double rate, Duration slo = Duration::milliseconds(200)) {
  return {.groups = {{.name = "resnet50", .profile = "resnet50", .count = 4, .slo = slo}},
          .streams = {{.name = "users", .models = {}, .arrivals = {.rate = rate}}}};
}

ClusterSimulationOptions options(uint64_t seed, uint32_t faults) {
  ClusterSimulationOptions options{.policy = "foliot",
                                   .make_policy = [](const Cluster& c) { return foliot_policy::make_foliot_policy(c); },
                                   .controller = {},
                                   .seed = seed,
                                   .page_cache_bytes = uint64_t{24} * (16 << 20)};
  options.controller.health = FailureDetectorOptions{.back_off_max = Duration::seconds(8)};
  options.faults.count = faults;
  return options;
}

ClusterSimulationReport run(const ClusterSimulationOptions& options, const Workload& workload) {
  const auto report = simulate_cluster(options, workload, ProfileTable::v100());
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() ? *report : ClusterSimulationReport();
}

ClusterSimulationReport run(const ClusterSimulationOptions& options, double rate = 100) {
  return run(options, workload(rate));
}

TEST(ClusterSimulationTest, ServesAlmostAllWhenNothingGoesWrong) {
  ClusterSimulationOptions quiet = options(1, 0);
  quiet.frontend.cancelled = 0;
  const ClusterTally requests = run(quiet, 200).requests;
  EXPECT_GT(requests.submitted, 1000u);
  EXPECT_GT(requests.served, requests.submitted * 99 / 100);
}

// Half of them are two requests or three, the later ones with the outputs of the first, which
// are held on any of the workers, as inputs.
TEST(ClusterSimulationTest, ServesStepsWhoseInputsAreHeldByWorkers) {
  ClusterSimulationOptions quiet = options(1, 0);
  quiet.frontend.cancelled = 0;
  const ClusterTally plain = run(quiet).requests;
  quiet.frontend.two_steps = 0.5;
  const ClusterTally requests = run(quiet).requests;
  EXPECT_GT(requests.submitted, plain.submitted * 3 / 2);
  EXPECT_GT(requests.served, requests.submitted * 99 / 100);
  EXPECT_EQ(requests.refused[static_cast<size_t>(Refusal::kWorkerLost)], 0u);
}

TEST(ClusterSimulationTest, EqualSeedsGiveEqualRuns) {
  const auto hash = [](uint64_t seed) { return run(options(seed, kFaults)).event_hash; };
  EXPECT_EQ(hash(7), hash(7));
  EXPECT_NE(hash(7), hash(8));
}

TEST(ClusterSimulationTest, KeepsItsPromisesWhateverGoesWrong) {
  for (uint64_t seed = 1; seed <= 40 && !HasFailure(); ++seed) run(options(seed, kFaults));
}

// FOLIOT_ELECTED_CLUSTER_SEEDS: how many seeds.
TEST(ClusterSimulationTest, KeepsItsPromisesWithTwoControllers) {
  const char* seeds = std::getenv("FOLIOT_ELECTED_CLUSTER_SEEDS");
  const uint64_t count = seeds == nullptr ? 40 : std::stoull(seeds);
  for (uint64_t seed = 1; seed <= count && !HasFailure(); ++seed) {
    ClusterSimulationOptions elected = options(seed, kFaults);
    elected.controllers = 2;
    if (seed % 2 == 0) {
      elected.frontend.two_steps = 0.2;
      elected.pipeline_share = 0.3;
      elected.task_share = 0.3;
    }
    run(elected);
  }
}

// The leader is killed, and nothing else goes wrong: what has time left is answered by the next one.
TEST(ClusterSimulationTest, TwoControllersAnswerAllThoughOneIsKilled) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    ClusterSimulationOptions elected = options(seed, 1);
    elected.controllers = 2;
    elected.frontend.cancelled = 0;
    elected.faults.kinds = {ClusterFaultKind::kKill};
    elected.faults_of_controllers = true;
    const ClusterTally requests = run(elected, workload(100, Duration::seconds(5))).requests;
    EXPECT_GT(requests.submitted, 500u);
    EXPECT_GE(requests.served, requests.submitted * 999 / 1000) << "seed " << seed;
  }
}

TEST(ClusterSimulationTest, HoldsNoOutputsTooLongWhateverGoesWrong) {
  for (uint64_t seed = 1; seed <= 30 && !HasFailure(); ++seed) {
    ClusterSimulationOptions steps = options(seed, kFaults);
    steps.frontend.two_steps = 0.5;
    run(steps);
  }
}

// Each run of the pipeline has one end, with what its stages computed from one another's outputs,
// which no worker holds any longer than it must.
TEST(ClusterSimulationTest, ServesRunsOfPipelines) {
  ClusterSimulationOptions quiet = options(1, 0);
  quiet.frontend.cancelled = 0;
  quiet.pipeline_share = 0.5;
  quiet.page_cache_bytes = uint64_t{28} * (16 << 20);  // all four models
  const ClusterTally requests = run(quiet).requests;
  EXPECT_GT(requests.submitted, 500u);
  EXPECT_GT(requests.served, requests.submitted * 95 / 100);
  EXPECT_EQ(requests.refused[static_cast<size_t>(Refusal::kWorkerLost)], 0u);
}

// FOLIOT_PIPELINE_CLUSTER_SEEDS: how many seeds.
TEST(ClusterSimulationTest, RunsOfPipelinesEndOnceWhateverGoesWrong) {
  const char* seeds = std::getenv("FOLIOT_PIPELINE_CLUSTER_SEEDS");
  const uint64_t count = seeds == nullptr ? 100 : std::stoull(seeds);
  for (uint64_t seed = 1; seed <= count && !HasFailure(); ++seed) {
    ClusterSimulationOptions runs = options(seed, kFaults);
    runs.pipeline_share = 0.5;
    run(runs);
  }
}

ClusterSimulationOptions with_elements(uint64_t seed, uint32_t faults) {
  ClusterSimulationOptions result = options(seed, faults);
  result.elements_share = 0.5;
  return result;
}

// Some runs count more elements than there may be, and are refused for that; all others are served.
TEST(ClusterSimulationTest, ServesRunsWithElements) {
  ClusterSimulationOptions quiet = with_elements(1, 0);
  quiet.frontend.cancelled = 0;
  quiet.page_cache_bytes = uint64_t{28} * (16 << 20);  // all four models
  const ClusterTally requests = run(quiet, 50).requests;
  EXPECT_GT(requests.submitted, 300u);
  const uint64_t wrong = requests.refused[static_cast<size_t>(Refusal::kModelError)];
  EXPECT_GT(wrong, 0u);
  EXPECT_GT(requests.served + wrong, requests.submitted * 95 / 100);
  EXPECT_EQ(requests.refused[static_cast<size_t>(Refusal::kWorkerLost)], 0u);
}

// FOLIOT_ELEMENT_CLUSTER_SEEDS: how many seeds.
TEST(ClusterSimulationTest, ElementsAreVisitedOnceEachWhateverGoesWrong) {
  const char* seeds = std::getenv("FOLIOT_ELEMENT_CLUSTER_SEEDS");
  const uint64_t count = seeds == nullptr ? 40 : std::stoull(seeds);
  for (uint64_t seed = 1; seed <= count && !HasFailure(); ++seed) {
    ClusterSimulationOptions runs = with_elements(seed, kFaults);
    if (seed % 2 == 0) runs.pipeline_share = 0.3;
    if (seed % 3 == 0) runs.frontend.two_steps = 0.3;
    run(runs);
  }
}

// Wants more copies with each look, of one model after the other, up to one for each device and beyond.
class RisingTargets : public SimulatedScaler {
 public:
  explicit RisingTargets(uint64_t& steps) : steps_(steps) {}
  std::optional<Targets> step(TimePoint /*now*/) override {
    if (models_.empty()) return std::nullopt;
    const ModelId model = models_[steps_++ % models_.size()];
    targets_.models[model].copies_least = static_cast<uint32_t>(steps_ % 5);
    return targets_;
  }
  void on_pipeline(const PipelineInfo& pipeline) override {
    models_.clear();
    targets_.models.clear();
    for (const PipelineStage& stage : pipeline.stages) models_.push_back(stage.model->id);
  }

 private:
  uint64_t& steps_;
  std::vector<ModelId> models_;
  Targets targets_;
};

TEST(ClusterSimulationTest, TargetsOfPipelinesKeepPromisesWhateverGoesWrong) {
  uint64_t steps = 0;
  for (uint64_t seed = 1; seed <= 10 && !HasFailure(); ++seed) {
    ClusterSimulationOptions scaled = with_elements(seed, kFaults);
    scaled.page_cache_bytes = uint64_t{24} * (16 << 20);  // three of the four models
    scaled.make_scaler = [&] { return std::make_unique<RisingTargets>(steps); };
    run(scaled);
  }
  EXPECT_GT(steps, 500u);
}

ClusterSimulationOptions with_tasks(uint64_t seed, uint32_t faults) {
  ClusterSimulationOptions result = options(seed, faults);
  result.task_share = 0.5;
  return result;
}

TEST(ClusterSimulationTest, ServesCallsOfTasks) {
  ClusterSimulationOptions quiet = with_tasks(1, 0);
  quiet.frontend.cancelled = 0;
  const ClusterTally requests = run(quiet).requests;
  EXPECT_GT(requests.submitted, 1000u) << "a call has two rows in the mean";
  EXPECT_GT(requests.served, requests.submitted * 95 / 100);
}

// Each row of a call has one end, by the one variant of the call, which is as accurate as was asked.
// FOLIOT_TASK_CLUSTER_SEEDS: how many seeds.
TEST(ClusterSimulationTest, CallsOfTasksEndOnceWhateverGoesWrong) {
  const char* seeds = std::getenv("FOLIOT_TASK_CLUSTER_SEEDS");
  const uint64_t count = seeds == nullptr ? 40 : std::stoull(seeds);
  for (uint64_t seed = 1; seed <= count && !HasFailure(); ++seed) {
    ClusterSimulationOptions calls = with_tasks(seed, kFaults);
    if (seed % 2 == 0) calls.pipeline_share = 0.2;
    if (seed % 3 == 0) calls.frontend.two_steps = 0.3;
    run(calls);
  }
}

// Two beside each other take seven tenths of what they take in turn.
class OverlappingDurations : public FakeDurationModel {
 public:
  void together(std::span<const std::span<const ExecSegment>> groups, std::span<Duration> durations) const override {
    FakeDurationModel::together(groups, durations);
    for (size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].size() > 1) durations[i] = durations[i].scaled(0.7);
    }
  }
};

ClusterSimulationOptions overlapping(uint64_t seed, uint32_t faults) {
  ClusterSimulationOptions result = options(seed, faults);
  result.policy = "overlap";
  result.make_policy = [](const Cluster& cluster) { return overlap::make_overlap_policy(cluster); };
  result.lanes = {.count = 4};
  result.contexts = 8;
  result.controller.make_durations = [] { return std::make_unique<OverlappingDurations>(); };
  return result;
}

// So many requests that the next query rarely fits whole beside the one that is due first.
Workload hurried() { return workload(1200, Duration::milliseconds(40)); }

// Workers say over the wire where batches can be cut, and how many they hold unfinished.
TEST(ClusterSimulationTest, CutsQueriesOnWorkersThatSayWhere) {
  ClusterSimulationOptions quiet = overlapping(1, 0);
  quiet.frontend.cancelled = 0;
  quiet.duration = quiet.duration * 4;
  const ClusterSimulationReport report = run(quiet, hurried());
  EXPECT_GT(report.requests.submitted, 1000u);
  EXPECT_GT(report.requests.served, report.requests.submitted * 3 / 4);
  EXPECT_GT(report.cuts, 700u);
}

TEST(ClusterSimulationTest, CutQueriesKeepPromisesWhateverGoesWrong) {
  uint64_t cuts = 0;
  for (uint64_t seed = 1; seed <= 10 && !HasFailure(); ++seed) cuts += run(overlapping(seed, kFaults), hurried()).cuts;
  EXPECT_GT(cuts, 2000u);
}

// Offline batches go on between requests with a deadline.
ClusterSimulationOptions with_offline_batches(uint64_t seed, uint32_t faults) {
  ClusterSimulationOptions result = options(seed, faults);
  result.contexts = 2;
  result.frontend.offline = 1;
  return result;
}

Workload with_offline_batches() {
  Workload result = workload(100);
  result.streams.push_back({.name = "offline", .models = {}, .arrivals = {.rate = 800}, .best_effort = true});
  return result;
}

TEST(ClusterSimulationTest, OfflineBatchesInPartsKeepPromisesWhateverGoesWrong) {
  uint64_t cuts = 0;
  for (uint64_t seed = 1; seed <= 10 && !HasFailure(); ++seed) {
    cuts += run(with_offline_batches(seed, kFaults), with_offline_batches()).cuts;
  }
  EXPECT_GT(cuts, 150u);
}

// Long batches of models within their share go on between requests that have less time than they take.
TEST(ClusterSimulationTest, BatchesWithDeadlinesInPartsKeepPromisesWhateverGoesWrong) {
  Workload mixed{.groups = {{.name = "long", .profile = "resnet152", .slo = Duration::milliseconds(500)}},
                 .streams = {{.name = "long", .models = {"long"}, .arrivals = {.rate = 100}}}};
  mixed.groups.push_back({.name = "tight", .profile = "resnet18", .slo = Duration::milliseconds(20)});
  mixed.streams.push_back({.name = "tight", .models = {"tight"}, .arrivals = {.rate = 300}});
  uint64_t cuts = 0;
  for (uint64_t seed = 1; seed <= 10 && !HasFailure(); ++seed) {
    ClusterSimulationOptions cut = options(seed, kFaults);
    cut.workers = 1;
    cut.contexts = 2;
    cuts += run(cut, mixed).cuts;
  }
  EXPECT_GT(cuts, 50u);
}

// Each line: a seed that found a defect once, and what it was.
TEST(ClusterSimulationTest, SeedsThatFoundDefectsFindNoneNow) {
  std::ifstream file("src/virtual/cluster/cluster_seeds.txt");
  ASSERT_TRUE(file) << "run it in the root of the repository";
  for (std::string line; std::getline(file, line) && !HasFailure();) {
    if (line.empty() || line[0] == '#') continue;
    run(options(std::stoull(line), kFaults));
  }
}

}  // namespace
}  // namespace foliot
