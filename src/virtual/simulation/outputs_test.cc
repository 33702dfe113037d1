// A model whose results take OUTPUT longer than EXEC takes to compute them, beside one with small results and tight
// deadlines: the small ones do not wait for the large ones. Policy foliot computes no result that would only wait.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "control/policies/registry.h"
#include "foundation/base/test_seed.h"
#include "foundation/base/test_time.h"
#include "virtual/simulation/simulation.h"

namespace foliot {
namespace {

// As the model of 4 MiB results in docs/RESULTS.md and its victim.
SimulationReport run(Duration large_slo, uint64_t seed) {
  ProfileTable profiles;
  const auto add = [&](const std::string& name, Duration exec) {
    EXPECT_TRUE(
        profiles.add({.name = name, .weights_bytes = 1 << 20, .load = ms(1), .batch_sizes = {1}, .exec = {exec}}).ok());
  };
  add("small", Duration::microseconds(50));
  add("large", ms(1));
  Workload workload;
  workload.groups.push_back({.name = "small", .profile = "small", .slo = ms(20)});
  workload.groups.push_back({.name = "large", .profile = "large", .slo = large_slo});
  workload.streams.push_back({.name = "small", .models = {"small"}, .arrivals = {.rate = 200}});
  workload.streams.push_back({.name = "large", .models = {"large"}, .arrivals = {.rate = 900}});
  auto report = simulate({.policy = "foliot",
                          .make_policy = find_policy("foliot")->make,
                          .controller = {},
                          .noise = {.outputs = {{"large", Duration::from_milliseconds(1.6)}}},
                          .seed = seed,
                          .duration = Duration::seconds(20),
                          .warm_up = Duration::seconds(5),
                          .preload = true},
                         workload, profiles);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return *std::move(report);
}

TEST(OutputsTest, SmallResultsDoNotWaitForLargeOnes) {
  const uint64_t seed = fresh_seed();
  for (const int64_t slo : {100, 1000}) {
    const SimulationReport report = run(ms(slo), seed);
    std::printf("large results within %ld ms: %.3f %% of the small, %.3f %% of the large in time\n", slo,
                100 * report.groups[0].attainment(), 100 * report.groups[1].attainment());
    EXPECT_GE(report.groups[0].attainment(), 0.999);
    // Of 900 results a second OUTPUT can take 625.
    EXPECT_GE(report.groups[1].attainment(), 0.65);
  }
}

}  // namespace
}  // namespace foliot
