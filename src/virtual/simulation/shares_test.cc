// No model is starved: each that asks for less than its share of the devices is served as with that share alone,
// whatever stands beside it, but for what an EXEC that cannot be interrupted keeps waiting; and all together are served
// as well as by any other policy. Models, loads and seeds are drawn anew for each run, and printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "control/policies/registry.h"
#include "foundation/base/random.h"
#include "foundation/base/test_seed.h"
#include "foundation/base/test_time.h"
#include "virtual/simulation/simulation.h"

namespace foliot {
namespace {

struct Mix {
  uint64_t seed = 1;
  uint32_t devices = 1;
  uint32_t lanes = 1;  // of each
  ProfileTable profiles = ProfileTable::v100();
  Workload workload;
  struct Model {
    Duration exec;  // of one row
    Duration slo;
    double rate;
    double demand() const { return rate * exec.to_seconds(); }  // devices, one row at a time
  };
  std::vector<Model> models;

  // `rows_cost`: what each further row of a batch takes, beside the first. `operators`: in which EXECs can be cut.
  void add(Model model, double rows_cost, uint32_t operators = 1) {
    const std::string name = "m" + std::to_string(models.size());
    ModelProfile profile{.name = name, .weights_bytes = 1 << 20, .load = Duration::milliseconds(1)};
    for (const uint32_t rows : {1u, 2u, 4u, 8u}) {
      profile.batch_sizes.push_back(rows);
      profile.exec.push_back(model.exec.scaled(1 + rows_cost * (rows - 1)));
    }
    for (uint32_t i = 1; operators > 1 && i <= operators; ++i) {
      profile.operator_ends.push_back(static_cast<double>(i) / operators);
    }
    ASSERT_TRUE(profiles.add(profile).ok());
    workload.groups.push_back({.name = name, .profile = name, .slo = model.slo});
    workload.streams.push_back({.name = name, .models = {name}, .arrivals = {.rate = model.rate}});
    models.push_back(model);
  }
};

SimulationReport run(const Mix& mix, const std::string& policy) {
  auto report = simulate({.policy = policy,
                          .make_policy = find_policy(policy)->make,
                          .controller = {},
                          .devices = mix.devices,
                          .lanes = {.count = mix.lanes, .parallel_share = 0.9},
                          .contexts = 2,
                          .seed = mix.seed,
                          .duration = Duration::seconds(40),
                          .warm_up = Duration::seconds(5),
                          .preload = true},
                         mix.workload, mix.profiles);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return *std::move(report);
}

// The share of a device of each model, what some do not ask for being left to the others.
std::vector<double> shares(const Mix& mix) {
  std::vector<double> shares(mix.models.size(), 0);
  double left = mix.devices;
  std::vector<size_t> order(mix.models.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](size_t i) { return mix.models[i].demand(); });
  for (size_t i = 0; i < order.size(); ++i) {
    shares[order[i]] = left / static_cast<double>(order.size() - i);
    left -= std::min(shares[order[i]], mix.models[order[i]].demand());
  }
  return shares;
}

double log_uniform(Random& random, double from, double to) { return from * std::pow(to / from, random.uniform()); }

Mix draw(uint64_t seed) {
  Mix mix{.seed = seed};
  Random random(seed);
  mix.devices = 1 + static_cast<uint32_t>(random.uniform() * 4);
  const auto count = 2 + static_cast<size_t>(random.uniform() * 7);
  // Together from a fifth of what the devices can do one row at a time to twice that.
  std::vector<double> parts;
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += parts.emplace_back(log_uniform(random, 0.01, 1));
  const double load = log_uniform(random, 0.2, 2) * mix.devices;
  for (const double part : parts) {
    const double exec_ms = log_uniform(random, 1, 400);
    const double slo_ms = std::max(log_uniform(random, 5, 5000), 2 * exec_ms + 3);
    const double rate = std::min(load * part / sum / (exec_ms / 1000), 1500.0);
    const double rows_cost = random.uniform();
    const auto operators = static_cast<uint32_t>(log_uniform(random, 1, 200));
    mix.add({Duration::from_milliseconds(exec_ms), Duration::from_milliseconds(slo_ms), rate}, rows_cost, operators);
  }
  return mix;
}

// The same on devices of one to four lanes.
Mix draw_with_lanes(uint64_t seed) {
  Mix mix = draw(seed);
  mix.lanes = 1 + static_cast<uint32_t>(Random(seed + 1).uniform() * 4);
  return mix;
}

// It asks for a fifth of the device at most, and the small ones for a quarter. Over eight seeds: where
// requests of 200 ms and more come close together, some of them and of the small ones are lost (0292).
TEST(SharesTest, BesideASlowModelThatCanBeCutAllAreServed) {
  const uint64_t seed = fresh_seed();
  for (const int64_t exec : {45, 60, 100, 200, 400}) {
    std::map<std::string, std::pair<uint64_t, uint64_t>> sums;  // in time, of how many
    for (uint64_t i = 0; i < 8; ++i) {
      Mix mix{.seed = seed + i};
      for (int k = 0; k < 4; ++k) mix.add({Duration::from_milliseconds(1.27), ms(30), 50}, 0.5);
      mix.add({ms(exec), ms(2000), exec < 400 ? 1 : 0.5}, 1, 100);
      for (const auto& group : run(mix, "foliot").groups) {
        sums[group.name].first += group.good_within;
        sums[group.name].second += group.offered;
      }
    }
    for (const auto& [name, sum] : sums) {
      const double least = name == "m4" ? 0.95 : exec < 200 ? 0.99 : 0.98;
      EXPECT_GE(static_cast<double>(sum.first) / static_cast<double>(sum.second), least) << exec << " " << name;
    }
  }
}

TEST(SharesTest, ASlowModelThatCannotBeCutIsServedBesideSmallOnes) {
  const uint64_t seed = fresh_seed();
  for (const int64_t exec : {45, 60, 100, 200, 400}) {
    Mix mix{.seed = seed};
    for (int i = 0; i < 4; ++i) mix.add({Duration::from_milliseconds(1.27), ms(30), 50}, 0.5);
    mix.add({ms(exec), ms(2000), exec < 400 ? 1 : 0.5}, 1);
    const SimulationReport foliot = run(mix, "foliot");
    std::printf("EXEC %ld ms: %.2f %% of all, %.2f %% of the slow model\n", exec, 100 * foliot.all.attainment(),
                100 * foliot.groups[4].attainment());
    for (const char* rival : {"edf", "clockwork"}) {
      const SimulationReport other = run(mix, rival);
      EXPECT_GE(foliot.groups[4].attainment(), other.groups[4].attainment() - 0.03) << exec << " " << rival;
      EXPECT_GE(foliot.all.attainment(), other.all.attainment() - 0.015) << exec << " " << rival;
    }
  }
}

constexpr uint64_t kMixes = 12;

// False where the model's requests have so little time that they may be late for EXECs of others, which are not cut.
bool has_time_for_others(const Mix& mix, const Mix::Model& model) {
  return std::ranges::all_of(mix.models, [&](const Mix::Model& other) { return other.exec * 3 < model.slo; });
}

// How many models within their shares are not served as with their shares alone. Prints each model.
uint32_t starved(const Mix& mix, const SimulationReport& report) {
  const std::vector<double> shares = foliot::shares(mix);
  uint32_t starved = 0;
  for (size_t i = 0; i < mix.models.size(); ++i) {
    const Mix::Model& model = mix.models[i];
    // With its share alone most of its requests would be in time.
    const double time = model.exec.to_seconds() / std::min(1.0, shares[i]);
    const bool within =
        model.demand() < shares[i] / 2 && 4 * time < model.slo.to_seconds() && has_time_for_others(mix, model);
    std::printf("  EXEC %6.1f ms, SLO %6.1f ms, %7.2f/s, asks for %.3f of %.3f: %.2f %%%s\n",
                model.exec.to_milliseconds(), model.slo.to_milliseconds(), model.rate, model.demand(), shares[i],
                100 * report.groups[i].attainment(), within ? ", within" : "");
    // Two in a hundred, and three standard deviations of that.
    const double most = 0.02 * static_cast<double>(report.groups[i].offered);
    if (within && static_cast<double>(report.groups[i].missed_total()) > most + 3 * std::sqrt(most)) ++starved;
  }
  return starved;
}

TEST(SharesTest, InAnyMixModelsWithinTheirShareAreServedAndAllTogetherAsByAnyOtherPolicy) {
  const std::vector<std::string> rivals{"edf", "sjf", "clockwork", "flex", "deferred"};
  std::vector<double> sums(rivals.size(), 0);
  double sum = 0;
  uint32_t starved = 0;
  const uint64_t first = fresh_seed();
  for (uint64_t seed = first; seed < first + kMixes; ++seed) {
    const Mix mix = draw_with_lanes(seed);
    const SimulationReport report = run(mix, "foliot");
    sum += report.all.attainment();
    std::printf("seed %lu: %u devices of %u lanes, %.2f %% of all;", seed, mix.devices, mix.lanes,
                100 * report.all.attainment());
    for (size_t i = 0; i < rivals.size(); ++i) {
      const double attainment = run(mix, rivals[i]).all.attainment();
      sums[i] += attainment;
      std::printf(" %s %.2f", rivals[i].c_str(), 100 * attainment);
    }
    std::printf("\n");
    starved += foliot::starved(mix, report);
  }
  // Of 614 in 528 mixes none was, but few requests may be unlucky.
  EXPECT_LE(starved, 1u);
  for (size_t i = 0; i < rivals.size(); ++i) {
    std::printf("mean: foliot %.2f %s %.2f\n", 100 * sum / kMixes, rivals[i].c_str(), 100 * sums[i] / kMixes);
    EXPECT_GE(sum / kMixes, sums[i] / kMixes - 0.01) << rivals[i];
  }
}

// Mixes that fresh seeds have found.
TEST(SharesTest, MixesThatWereServedWronglyAreServed) {
  // A batch of eight has no time, and was planned all the same: 0.05 % in time.
  const SimulationReport full = run(draw(13002529), "foliot");
  EXPECT_GE(full.all.attainment(), 0.84);
  // Models within their shares had 6 and 13 %, 5 and 80, 15: they serve the fewest requests for their time.
  for (const uint64_t seed : {50017004u, 50044007u, 50026008u}) {
    const Mix mix = draw(seed);
    EXPECT_EQ(starved(mix, run(mix, "foliot")), 0u) << seed;
  }
}

}  // namespace
}  // namespace foliot
