// Devices of several kinds under one controller, with models that only some can run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/policies/registry.h"
#include "virtual/simulation/kind_parts.h"
#include "virtual/simulation/simulation.h"

namespace foliot {
namespace {

using testing::HasSubstr;

// Eight models each on two "cpu" devices and on one "gpu", with memory for six of them.
SimulationOptions kinds_options(const std::string& policy, uint64_t seed) {
  return {.policy = policy,
          .make_policy = find_policy(policy)->make,
          .devices = 3,
          .kinds = {{.name = "cpu", .devices = 2, .page_cache_bytes = uint64_t{7 * 3 * 16} << 20},
                    {.name = "gpu", .devices = 1, .page_cache_bytes = uint64_t{7 * 6 * 16} << 20}},
          .seed = seed,
          .duration = Duration::seconds(4)};
}

Workload kinds_workload() {
  Workload workload;
  const auto add = [&](const std::string& kind) {
    workload.groups.push_back({.name = kind + "_models",
                               .profile = "resnet50",
                               .count = 8,
                               .slo = Duration::milliseconds(100),
                               .runs_on = {{.kind = kind, .profile = {}}}});
    Stream stream{.name = kind, .models = {kind + "_models"}};
    stream.arrivals.rate = 250;
    workload.streams.push_back(stream);
  };
  add("cpu");
  add("gpu");
  return workload;
}

uint64_t served(const SimulationOptions& options, const Workload& workload) {
  const auto report = simulate(options, workload, ProfileTable::v100());
  EXPECT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->proposals_rejected, 0u);
  return report->all.good_within;
}

class KindsTest : public testing::TestWithParam<std::string> {};

// The checker stops the program where something is placed that cannot run.
TEST_P(KindsTest, ServeTogetherWhatTheyServeApart) {
  uint64_t together = 0;
  uint64_t apart = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const SimulationOptions options = kinds_options(GetParam(), seed);
    const Workload workload = kinds_workload();
    together += served(options, workload);
    const auto parts = split_by_kind(options, workload);
    ASSERT_TRUE(parts.ok() && parts->size() == 2);
    for (const KindPart& part : *parts) apart += served(part.options, part.workload);
  }
  EXPECT_GE(together * 1000, apart * 999);
}

INSTANTIATE_TEST_SUITE_P(Policies, KindsTest, testing::Values("foliot", "clockwork", "edf", "deferred"),
                         [](const auto& test) { return test.param; });

TEST(KindsSimulationTest, OneKindByNameIsTheSameAsNone) {
  SimulationOptions options = kinds_options("foliot", 7);
  options.kinds.clear();
  Workload workload = kinds_workload();
  for (ModelGroup& group : workload.groups) group.runs_on.clear();
  const auto without = simulate(options, workload, ProfileTable::v100());
  options.kinds = {{.name = "cpu", .devices = 3, .page_cache_bytes = options.page_cache_bytes}};
  const auto with = simulate(options, workload, ProfileTable::v100());
  ASSERT_TRUE(without.ok() && with.ok());
  EXPECT_EQ(without->event_hash, with->event_hash);
}

TEST(KindsSimulationTest, SaysWhichKindsThereAreWhereNoneFits) {
  Workload workload = kinds_workload();
  workload.groups[1].runs_on = {{.kind = "cuda", .profile = {}}};
  EXPECT_THAT(
      simulate(kinds_options("foliot", 1), workload, ProfileTable::v100()).status().message(),
      HasSubstr("models 'gpu_models' are not served: they run on devices of kind cuda, and the cluster has cpu, gpu"));
}

}  // namespace
}  // namespace foliot
