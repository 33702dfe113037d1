#include "virtual/simulation/simulation.h"

#include <gtest/gtest.h>

#include "control/policies/clockwork/clockwork_policy.h"

namespace foliot {
namespace {

SimulationOptions clockwork_options() {
  return {.policy = "clockwork",
          .make_policy = [](const Cluster& cluster) { return clockwork::make_clockwork_policy(cluster); },
          .controller = {},
          .duration = Duration::seconds(10)};
}

Workload resnets(uint32_t count, double rate) {
  return {.groups = {{.name = "resnet50", .profile = "resnet50", .count = count, .slo = Duration::milliseconds(100)}},
          .streams = {{.name = "users", .models = {}, .arrivals = {.rate = rate}}}};
}

SimulationReport run(const SimulationOptions& options, const Workload& workload) {
  auto report = simulate(options, workload, ProfileTable::v100());
  EXPECT_TRUE(report.ok()) << report.status().message();
  return std::move(report).value();
}

TEST(SimulationTest, EveryRequestIsCountedOnce) {
  SimulationOptions options = clockwork_options();
  options.warm_up = Duration::seconds(2);
  const SimulationReport report = run(options, resnets(10, 500));
  EXPECT_NEAR(report.offered_rate(), 500, 25);
  uint64_t missed = 0;
  for (const auto& [reason, count] : report.all.missed) missed += count;
  EXPECT_EQ(report.all.offered, report.all.good + missed);
  EXPECT_EQ(report.all.offered, report.groups.at(0).offered);
  EXPECT_GT(report.all.attainment(), 0.98);
  EXPECT_LE(report.all.mispredicted, missed);

  ASSERT_EQ(report.series.size(), 10u);
  uint64_t offered = 0;
  for (const SimulationInterval& row : report.series) {
    offered += row.all.offered;
    EXPECT_EQ(row.all.offered, row.groups.at(0).offered);
    EXPECT_LE(row.device_busy, 1 + 1e-9);
    EXPECT_LE(row.active_models, 10u);
  }
  EXPECT_EQ(offered, report.requests);
  EXPECT_GT(report.requests, report.all.offered);  // those of the warm-up

  uint64_t execs = 0;
  for (const uint64_t count : report.batch_sizes) execs += count;
  EXPECT_EQ(execs, report.execs);
  EXPECT_LE(report.device_busy(), 1);
  EXPECT_EQ(report.infer_duration.over.count() + report.infer_duration.under.count(), report.execs);
}

TEST(SimulationTest, GoodputLeavesOutAnswersAfterTheEnd) {
  // Ten times what the device can do, with deadlines of half the run: in the last
  // seconds as much is answered that came before the end, and counts as good.
  SimulationOptions options = clockwork_options();
  options.preload = true;
  options.duration = Duration::seconds(4);
  Workload workload = resnets(5, 10'000);
  workload.groups[0].slo = Duration::seconds(2);
  const SimulationReport report = run(options, workload);
  EXPECT_GT(static_cast<double>(report.all.good) / 4, 1.2 * 1021);
  EXPECT_LE(report.goodput(), 1.01 * 1021);
  EXPECT_GT(report.goodput(), 0.85 * 1021);
  EXPECT_EQ(report.groups[0].good_within, report.all.good_within);
}

TEST(SimulationTest, PreloadedModelsStartWarm) {
  SimulationOptions options = clockwork_options();
  EXPECT_GT(run(options, resnets(20, 100)).all.cold_starts, 0u);
  options.preload = true;
  const SimulationReport report = run(options, resnets(20, 100));
  EXPECT_EQ(report.all.cold_starts, 0u);
  EXPECT_EQ(report.loads, 0u);
}

TEST(SimulationTest, ClosedLoopsKeepAsManyRequestsInFlightAsTheyHaveUsers) {
  Workload workload = resnets(3, 1);
  workload.groups[0].slo.reset();
  workload.streams[0].concurrency = 16;
  const SimulationReport report = run(clockwork_options(), workload);
  // Batches of 16 in 15.67 ms: no policy could do better, but for those that are
  // answered after the end.
  EXPECT_LE(report.goodput(), 1021 + 4.8);
  EXPECT_GT(report.goodput(), 900);
  EXPECT_GT(report.batch_size_mean(), 14);
  EXPECT_EQ(report.all.good, report.all.offered);
}

TEST(SimulationTest, GroupsAreCountedSeparately) {
  Workload workload = resnets(5, 100);
  workload.groups.push_back({.name = "heavy", .profile = "resnet152", .slo = Duration::milliseconds(5)});
  workload.streams[0].models = {"resnet50"};
  workload.streams.push_back({.name = "hopeless", .models = {"heavy"}, .arrivals = {.rate = 50}});
  const SimulationReport report = run(clockwork_options(), workload);
  EXPECT_GT(report.groups.at(0).attainment(), 0.98);
  EXPECT_EQ(report.groups.at(1).good, 0u);
  EXPECT_NEAR(static_cast<double>(report.groups.at(1).offered), 500, 100);
  EXPECT_EQ(report.all.offered, report.groups.at(0).offered + report.groups.at(1).offered);
}

TEST(SimulationTest, ASeedGivesTheSameRunAndAnotherSeedAnother) {
  SimulationOptions options = clockwork_options();
  const Workload workload = resnets(30, 700);
  const SimulationReport first = run(options, workload);
  EXPECT_EQ(first.event_hash, run(options, workload).event_hash);
  options.seed = 2;
  EXPECT_NE(first.event_hash, run(options, workload).event_hash);
}

// Clockwork, section 6.5: p99 of over- and underprediction; the latter is 61 to 72 us here,
// depending on the seed.
TEST(SimulationTest, ClockworksNoiseGivesClockworksPredictionErrors) {
  SimulationOptions options = clockwork_options();
  options.noise = NoiseOptions::clockwork();
  options.page_cache_bytes = uint64_t{16 * 7 * 10} << 20;
  options.duration = Duration::seconds(200);
  const SimulationReport report = run(options, resnets(30, 100));
  const auto p99 = [](const Histogram& histogram) { return histogram.quantile(0.99).to_microseconds(); };
  EXPECT_NEAR(p99(report.infer_duration.over), 144, 20);
  EXPECT_NEAR(p99(report.infer_duration.under), 55, 20);
  EXPECT_NEAR(p99(report.load_duration.over), 431, 60);
  EXPECT_NEAR(p99(report.load_duration.under), 348, 60);
}

TEST(SimulationTest, WhatCannotBeRunIsNamed) {
  const auto message = [](const SimulationOptions& options, const Workload& workload) {
    return simulate(options, workload, ProfileTable::v100()).status().message();
  };
  SimulationOptions options = clockwork_options();
  Workload workload = resnets(1, 1);
  workload.groups[0].profile = "gpt";
  EXPECT_NE(message(options, workload).find("there is no profile 'gpt'; there are densenet169"), std::string::npos);
  options.page_cache_bytes = uint64_t{16} << 20;
  EXPECT_NE(message(options, resnets(1, 1)).find("models 'resnet50' take 7 pages; a device has 1"), std::string::npos);
  options.devices = 0;
  EXPECT_NE(message(options, resnets(1, 1)).find("devices"), std::string::npos);
}

}  // namespace
}  // namespace foliot
