// Pipelines that tuners scale, in a simulated cluster under faults.
#include "virtual/experiments/tuned_pipelines.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "control/policies/registry.h"
#include "virtual/cluster/cluster_simulation.h"

namespace foliot {
namespace {

ClusterSimulationReport run(uint64_t seed, uint32_t faults, const MakeScaler& make_scaler) {
  ClusterSimulationOptions options{.policy = "foliot",
                                   .make_policy = find_policy("foliot")->make,
                                   .controller = {},
                                   .seed = seed,
                                   .page_cache_bytes = uint64_t{24} * (16 << 20)};  // three of the four models
  options.controller.health = FailureDetectorOptions{.back_off_max = Duration::seconds(8)};
  options.pipeline_share = 0.3;
  options.elements_share = 0.4;
  options.faults.count = faults;
  options.make_scaler = make_scaler;
  const Workload workload{
      .groups = {{.name = "resnet50", .profile = "resnet50", .count = 4, .slo = Duration::milliseconds(200)}},
      .streams = {{.name = "users", .models = {}, .arrivals = {.rate = 100}}}};
  const auto report = simulate_cluster(options, workload, ProfileTable::v100());
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() ? *report : ClusterSimulationReport();
}

// Counts what is wanted, and remembers the most copies of one model.
class WatchedTuners : public TunedPipelines {
 public:
  struct Seen {
    uint64_t changes = 0;
    uint32_t copies_most = 0;
  };
  WatchedTuners(double rate, Seen& seen) : TunedPipelines(rate), seen_(seen) {}
  std::optional<Targets> step(TimePoint now) override {
    auto targets = TunedPipelines::step(now);
    if (!targets) return targets;
    ++seen_.changes;
    for (const auto& [model, target] : targets->models) {
      seen_.copies_most = std::max(seen_.copies_most, target.copies_least);
    }
    return targets;
  }

 private:
  Seen& seen_;
};

TEST(TunedPipelinesTest, WantMoreCopiesThanPlannedWhenMoreRunsCome) {
  const auto most = [](double rate) {
    WatchedTuners::Seen seen;
    run(1, 0, [&] { return std::make_unique<WatchedTuners>(rate, seen); });
    EXPECT_GT(seen.changes, 0u);
    return seen.copies_most;
  };
  EXPECT_GT(most(2), most(100));
}

TEST(TunedPipelinesTest, KeepPromisesWhateverGoesWrong) {
  WatchedTuners::Seen seen;
  for (uint64_t seed = 1; seed <= 20 && !HasFailure(); ++seed) {
    run(seed, 16, [&] { return std::make_unique<WatchedTuners>(10, seen); });
  }
  EXPECT_GT(seen.changes, 100u);
}

}  // namespace
}  // namespace foliot
