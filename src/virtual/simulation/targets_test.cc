// Targets in simulations, which change while requests come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/policies/registry.h"
#include "virtual/simulation/simulation.h"

namespace foliot {
namespace {

using testing::HasSubstr;

SimulationOptions options_of(const std::vector<TargetChange>& targets) {
  return {.policy = "foliot",
          .make_policy = find_policy("foliot")->make,
          .devices = 2,
          .page_cache_bytes = uint64_t{7 * 4 * 16} << 20,
          .duration = Duration::seconds(4),
          .targets = targets};
}

Workload workload_of() {
  Workload workload;
  for (const std::string name : {"first", "second"}) {
    workload.groups.push_back({.name = name, .profile = "resnet50", .count = 3, .slo = Duration::milliseconds(100)});
    Stream stream{.name = name, .models = {name}};
    stream.arrivals.rate = 100;
    workload.streams.push_back(stream);
  }
  return workload;
}

Result<SimulationReport> run(const std::vector<TargetChange>& targets) {
  return simulate(options_of(targets), workload_of(), ProfileTable::v100());
}

TEST(TargetsTest, HoldForTheModelsOfTheirGroupsFromTheirTimeOn) {
  const auto report = run({{.at = Duration::seconds(1), .models = {"first"}, .target = {.copies_most = 0}},
                           {.at = Duration::seconds(3), .models = {}, .target = {}}});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->proposals_rejected, 0u);
  const double first = static_cast<double>(report->groups[0].offered - report->groups[0].good);
  EXPECT_NEAR(first / static_cast<double>(report->groups[0].offered), 0.5, 0.1) << "two of four seconds";
  EXPECT_GT(report->groups[1].good, report->groups[1].offered * 95 / 100);
}

TEST(TargetsTest, ErrorsNameWhatIsWrong) {
  const auto error = [](const TargetChange& change) { return run({change}).status().message(); };
  EXPECT_THAT(error({.at = Duration::seconds(4)}), HasSubstr("'at' must be within the duration"));
  EXPECT_THAT(error({.models = {"third"}}), HasSubstr("there are no models 'third'"));
  EXPECT_THAT(error({.target = {.copies_least = 2, .copies_most = 1}}), HasSubstr("copies_least is 2"));
  EXPECT_THAT(error({.target = {.kinds = {"gpu"}}}), HasSubstr("no devices of kind 'gpu'; there are cpu"));
  EXPECT_THAT(error({.target = {.batch_most = 0}}), HasSubstr("batch_most is 0"));
}

}  // namespace
}  // namespace foliot
