// The suite on targets that every policy of control/policies/registry.cc passes: what the checker sees to, and
// what targets promise besides.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "control/policies/test_policy_run.h"

namespace foliot {
namespace {

// The largest batch; of each model the most copies, and how often it was unloaded.
class TargetWatch : public Observer {
 public:
  void on_action(const Action& action, TimePoint now) override {
    if (action.type == ActionType::kInfer && now >= from) batch = std::max(batch, action.batch_size);
    if (action.type == ActionType::kLoad) {
      copies_most[action.model] = std::max(copies_most[action.model], ++copies[action.model]);
    }
    if (action.type != ActionType::kUnload) return;
    --copies[action.model];
    ++unloads[action.model];
  }
  TimePoint from;  // batches count from then on
  uint32_t batch = 0;
  std::map<ModelId, uint32_t> copies;
  std::map<ModelId, uint32_t> copies_most;
  std::map<ModelId, uint32_t> unloads;
};

// What the checker sees to: no LOAD and no INFER against the targets in force, no copy that
// stays where it must not; and finish(): no proposal is turned down, none waits for ever.
class PolicyTargetsTest : public ::testing::TestWithParam<RegisteredPolicy> {
 protected:
  static Targets targets(uint32_t model, const ModelTarget& target) { return {{{ModelId(model), target}}}; }
  static uint32_t copies(PolicyRun& run, uint32_t model) { return run.cluster().controller().cluster().copies[model]; }
  // Those that hold it, on their way in or out too.
  static std::vector<uint32_t> holders(PolicyRun& run, uint32_t model) {
    std::vector<uint32_t> found;
    for (const DeviceModel& device : run.cluster().controller().cluster().devices) {
      if (device.held(ModelId(model)) != Residency::kAbsent) found.push_back(device.id().value());
    }
    return found;
  }
  void at(PolicyRun& run, double seconds, std::function<void()> look) {
    run.loop().at(TimePoint() + Duration::from_seconds(seconds),
                  [own = &looks_.emplace_back(std::move(look))] { (*own)(); });
  }

 private:
  std::deque<std::function<void()>> looks_;
};

TEST_P(PolicyTargetsTest, LoadsTheLeastCopiesWithoutRequests) {
  PolicyWorkload workload{.models = 30, .devices = 3, .pages = 7 * 32, .requests = 0};
  Targets all;
  for (uint32_t id = 0; id < 30; ++id)
    all.models[ModelId(id)] = {.copies_least = 1 + id % 3, .copies_most = 1 + id % 3};
  workload.targets = {{Duration(), all}};
  PolicyRun run(GetParam(), workload);
  run.finish();
  for (uint32_t id = 0; id < 30; ++id) EXPECT_EQ(copies(run, id), 1 + id % 3) << "model " << id;
}

TEST_P(PolicyTargetsTest, NeverExceedsTheMostCopies) {
  PolicyWorkload workload{.models = 2, .devices = 4, .rate = 2800, .skew = 4, .requests = 9000};
  workload.slos = {Duration::milliseconds(30)};
  const auto most_copies = [&] {
    TargetWatch watch;
    PolicyRun run(GetParam(), workload);
    run.cluster().controller().add_observer(watch);
    run.finish();
    EXPECT_GT(run.served(0), 500u);
    return watch.copies_most[ModelId(0)];
  };
  EXPECT_GT(most_copies(), 2u) << "it has to be kept from more";
  workload.targets = {{Duration(), targets(0, {.copies_most = 2})}};
  EXPECT_LE(most_copies(), 2u);
}

TEST_P(PolicyTargetsTest, UnloadsWhatIsTooMuch) {
  for (const uint64_t requests : {0, 3000}) {
    SCOPED_TRACE(requests);
    PolicyWorkload workload{.models = 2, .devices = 4, .rate = 700, .skew = 3, .requests = requests};
    workload.targets = {{Duration(), targets(0, {.copies_least = 4})},
                        {Duration::seconds(2), targets(0, {.copies_most = 1})},
                        {Duration::seconds(3), targets(0, {.copies_most = 0})}};
    PolicyRun run(GetParam(), workload);
    at(run, 1.9, [&] { EXPECT_EQ(holders(run, 0).size(), 4u); });
    at(run, 2.3, [&] { EXPECT_EQ(holders(run, 0).size(), 1u); });
    at(run, 3.3, [&] { EXPECT_EQ(holders(run, 0).size(), 0u); });
    run.finish();
    EXPECT_EQ(run.cluster().checker().refused(Refusal::kUnloaded) > 300, requests > 0);
  }
}

TEST_P(PolicyTargetsTest, PlacesModelsOnTheKindsThatAreAllowed) {
  PolicyWorkload workload{.models = 4, .rate = 300, .skew = 0, .requests = 1500};
  workload.kinds = {{"cpu", 2, 7 * 4}, {"gpu", 1, 14 * 4}};
  workload.model_kinds = {3, 3, 1, 2};
  workload.slos = {Duration::milliseconds(100), Duration::max()};
  workload.targets = {{Duration::seconds(1), targets(0, {.kinds = {"gpu"}})},
                      {Duration::seconds(2), targets(0, {.kinds = {"cpu"}})},
                      {Duration::seconds(3), targets(2, {.copies_least = 1, .kinds = {"gpu"}})},
                      {Duration::seconds(4), {}}};
  PolicyRun run(GetParam(), workload);
  uint64_t served_before = 0;
  at(run, 1.5, [&] { EXPECT_EQ(holders(run, 0), std::vector{2u}); });
  at(run, 2.3, [&] { served_before = run.served(0); });
  at(run, 2.9, [&] {
    for (const uint32_t device : holders(run, 0)) EXPECT_LT(device, 2u);
    EXPECT_FALSE(holders(run, 0).empty());
    EXPECT_GT(run.served(0), served_before + 10);
  });
  at(run, 3.5, [&] { EXPECT_TRUE(holders(run, 2).empty()) << "it runs on no gpu"; });
  run.finish();
  EXPECT_GT(run.cluster().checker().refused(Refusal::kUnloaded), 20u) << "of model 2, for a second";
}

TEST_P(PolicyTargetsTest, RunsNoBatchAboveTheLargest) {
  PolicyWorkload workload{.models = 2, .rate = 1500, .skew = 0, .requests = 6000};
  TargetWatch watch;
  watch.from = TimePoint() + Duration::seconds(1);
  workload.targets = {{Duration::seconds(1), {{{ModelId(0), {.batch_most = 3}}, {ModelId(1), {.batch_most = 1}}}}}};
  PolicyRun run(GetParam(), workload);
  run.cluster().controller().add_observer(watch);
  run.finish();
  EXPECT_LE(watch.batch, 2u);
  EXPECT_GT(run.served(0) + run.served(1), 1000u);

  workload.targets.emplace_back(Duration::seconds(2), Targets());
  workload.requests = 7000;
  TargetWatch after;
  after.from = TimePoint() + Duration::seconds(2);
  TargetWatch ever;
  PolicyRun released(GetParam(), workload);
  released.cluster().controller().add_observer(after);
  released.cluster().controller().add_observer(ever);
  released.finish();
  EXPECT_EQ(after.batch, ever.batch) << "as large as before";
}

TEST_P(PolicyTargetsTest, KeepsRequiredCopiesUnderMemoryPressure) {
  PolicyWorkload workload{.models = 16, .devices = 2, .pages = 7 * 4, .rate = 80, .skew = 0.2, .requests = 1600};
  workload.targets = {{Duration::seconds(2), targets(15, {.copies_least = 2})}};
  TargetWatch watch;
  PolicyRun run(GetParam(), workload);
  run.cluster().controller().add_observer(watch);
  uint32_t unloads_before = 0;
  at(run, 2.5, [&] {
    EXPECT_EQ(copies(run, 15), 2u) << "though pages were full";
    unloads_before = watch.unloads[ModelId(15)];
  });
  run.finish();
  EXPECT_EQ(copies(run, 15), 2u);
  EXPECT_EQ(watch.unloads[ModelId(15)], unloads_before);
  uint32_t others = 0;
  for (const auto& [model, unloads] : watch.unloads) others += unloads;
  EXPECT_GT(others, 100u) << "there has to be pressure";
}

TEST_P(PolicyTargetsTest, TargetsGoWithTheirModel) {
  PolicyWorkload workload{.models = 4, .pages = 7 * 5, .rate = 150, .requests = 1200, .removed_at = 500};
  workload.targets = {{Duration(), targets(1, {.copies_least = 1})}};
  PolicyRun run(GetParam(), workload);
  at(run, 1, [&] { EXPECT_EQ(copies(run, 1), 1u); });
  run.finish();
  EXPECT_TRUE(run.cluster().controller().model_gone(ModelId(1)));
  EXPECT_EQ(run.cluster().set_targets(workload.targets[0].second).code(), StatusCode::kNotFound);
}

TEST_P(PolicyTargetsTest, TargetsThatCannotBeMetStallNoOtherModel) {
  PolicyWorkload workload{.models = 6, .devices = 2, .pages = 7 * 6, .rate = 200, .requests = 3000, .warm_up = 500};
  // There are two devices, and no room for all of the others.
  workload.targets = {{Duration(),
                       {{{ModelId(0), {.copies_least = 10}},
                         {ModelId(1), {.copies_least = 2, .copies_most = 2}},
                         {ModelId(2), {.copies_least = 2}},
                         {ModelId(3), {.copies_least = 2}},
                         {ModelId(4), {.copies_least = 2}}}}}};
  PolicyRun run(GetParam(), workload);
  run.finish();
  EXPECT_EQ(copies(run, 0), 2u);
  EXPECT_GT(run.served(5), 20u);
  std::printf("attainment %.4f\n", run.attainment());
  EXPECT_GT(run.attainment(), 0.95);
}

TEST_P(PolicyTargetsTest, RestoresTheLeastCopiesAfterALostDevice) {
  PolicyWorkload workload{.models = 4, .devices = 3, .pages = 7 * 5, .rate = 150, .requests = 900};
  workload.health = true;
  workload.faults = {
      {.kind = FaultKind::kKill, .device = 0, .at = Duration::seconds(2), .length = Duration::seconds(2)},
      {.kind = FaultKind::kAway, .device = 1, .at = Duration::seconds(6), .length = Duration::seconds(1)}};
  workload.targets = {{Duration(), targets(3, {.copies_least = 2, .copies_most = 2})}};
  PolicyRun run(GetParam(), workload);
  at(run, 1.9, [&] { EXPECT_EQ(copies(run, 3), 2u); });
  at(run, 3.9, [&] { EXPECT_EQ(copies(run, 3), 2u); });
  at(run, 6.9, [&] { EXPECT_EQ(copies(run, 3), 2u); });
  run.finish();
  EXPECT_EQ(copies(run, 3), 2u) << "no more than two when devices are back";
}

TEST_P(PolicyTargetsTest, TargetsThatConstrainNothingChangeNothing) {
  const PolicyWorkload workload{.models = 20, .devices = 2, .rate = 400, .requests = 3000};
  const auto hash = [&](bool set) {
    PolicyRun run(GetParam(), workload);
    Targets targets;
    for (uint32_t id = 0; id < 20; ++id) targets.models[ModelId(id)];
    if (set) at(run, 1, [&] { EXPECT_TRUE(run.cluster().controller().set_targets(targets, run.loop().now()).ok()); });
    run.finish();
    return run.cluster().event_hash();
  };
  EXPECT_EQ(hash(true), hash(false));
}

// Whatever is set, and whatever goes wrong meanwhile.
TEST_P(PolicyTargetsTest, KeepsItsPromisesUnderTargetsDrawnAtRandom) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    PolicyWorkload workload{.profiles = {kResNet50, kTiny, kResNet18},
                            .models = static_cast<uint32_t>(2 + random.below(12)),
                            .rate = 100 + 600 * random.uniform(),
                            .slos = {Duration::milliseconds(50), Duration::max()},
                            .requests = 1500,
                            .cancelled = 0.1 * random.uniform(),
                            .seed = seed};
    workload.kinds = {{"cpu", 2, static_cast<uint32_t>(14 + random.below(30))}, {"gpu", 2, 28}};
    workload.model_kinds = {1, 2, 3};
    workload.health = seed % 2 == 0;
    for (uint32_t device = 0; device < 4 && workload.health; ++device) {
      const auto length = Duration::milliseconds(static_cast<int64_t>(20 + random.below(1000)));
      const auto when = Duration::milliseconds(static_cast<int64_t>(200 + random.below(2000)));
      workload.faults.push_back(
          {.kind = static_cast<FaultKind>(random.below(8)), .device = device, .at = when, .length = length});
    }
    Duration when;
    for (int change = 0; change < 30; ++change) {
      when += Duration::milliseconds(static_cast<int64_t>(random.below(200)));
      Targets& drawn = workload.targets.emplace_back(when, Targets()).second;
      for (uint32_t id = 0; id < workload.models; ++id) {
        if (random.below(2) == 0) continue;
        ModelTarget& target = drawn.models[ModelId(id)];
        target.copies_least = static_cast<uint32_t>(random.below(3));
        if (random.below(2) == 0) target.copies_most = target.copies_least + static_cast<uint32_t>(random.below(3));
        if (random.below(3) == 0) target.kinds = {random.below(2) == 0 ? "cpu" : "gpu"};
        if (random.below(3) == 0) target.batch_most = static_cast<uint32_t>(1 + random.below(8));
      }
    }
    workload.targets.emplace_back(when + Duration::milliseconds(100), Targets());
    const auto hash = [&] {
      PolicyRun run(GetParam(), workload);
      run.finish();
      return run.cluster().event_hash();
    };
    EXPECT_EQ(hash(), hash());
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, PolicyTargetsTest, ::testing::ValuesIn(policies()),
                         [](const auto& policy) { return policy.param.name; });

}  // namespace
}  // namespace foliot
