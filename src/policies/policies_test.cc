// The suite that every policy of policies/registry.cc passes: what Foliot promises
// whatever the policy, in virtual time, with the production code of controller and
// worker and with checkers that stop at the first broken promise.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "controller/fake_duration_model.h"
#include "policies/registry.h"
#include "sim/virtual_cluster.h"

namespace foliot {

void PrintTo(const RegisteredPolicy& policy, std::ostream* out) { *out << policy.name; }

namespace {

// From the V100 profile of Clockwork, Table 1: pages of 16 MB, ms.
struct Profile {
  const char* name;
  uint32_t pages;
  double load;
  std::vector<double> exec;
};
const Profile kResNet50{"resnet50", 7, 8.33, {2.61, 3.78, 5.61, 9.13, 15.67}};
const Profile kResNet18{"resnet18", 3, 3.81, {1.27, 1.86, 2.73, 4.06, 7.02}};
// So short that the lookahead of most policies is more actions than a device takes.
const Profile kTiny{"tiny", 1, 0.2, {0.05, 0.06, 0.08, 0.12, 0.2}};
const Profile kDenseNet169{"densenet169", 4, 4.50, {5.18, 6.29, 8.57, 12.82, 21.85}};

// Ids in no order of arrival, as those of front ends: odd, so all are different.
constexpr uint64_t kIdFactor = 0x9e3779b97f4a7c15;

std::shared_ptr<ModelInfo> make_model(uint32_t id, const Profile& profile, uint16_t buckets = 1) {
  auto model = std::make_shared<ModelInfo>();
  model->id = ModelId(id);
  model->name = std::string(profile.name) + "_" + std::to_string(id);
  model->only().batch_sizes = {1, 2, 4, 8, 16};
  model->only().pages = profile.pages;
  model->only().seed_load = Duration::from_milliseconds(profile.load);
  for (int b = 1; b <= buckets; ++b) {
    model->buckets.emplace_back();
    std::vector<Duration>& seeds = model->only().seed_exec.emplace_back();
    for (const double ms : profile.exec) seeds.push_back(Duration::from_milliseconds(ms * b));
  }
  return model;
}

struct Workload {
  std::vector<Profile> profiles{kResNet50};  // model i has profile i modulo their number
  uint32_t models = 8;
  uint32_t devices = 1;
  uint32_t pages = 7 * 8;
  uint32_t lanes = 1;
  uint32_t contexts = 1;
  // Models have 20 operators, groups are expected to take 0.7 of their sum, and EXECs slow
  // each other down: by more than that.
  bool groups = false;
  uint16_t buckets = 1;
  double rate = 100;  // requests/s in all, Poisson
  // Each request draws one of these; Duration::max() is best effort.
  std::vector<Duration> slos{Duration::milliseconds(100)};
  double skew = 1;  // popularity of model i: 1 / (i + 1)^skew
  uint64_t requests = 10'000;
  double cancelled = 0;     // share of requests whose client goes away at once
  uint64_t removed_at = 0;  // with this request a model is removed; 0: never
  // Models begin with their smallest batch size; after each of these times one more is
  // ready. Zero: all from the beginning.
  Duration next_size_after;
  std::vector<Fault> faults{};
  std::vector<std::pair<uint32_t, uint32_t>> damaged{};  // device and model: LOADs fail
  bool health = false;  // is looked after; then a run is over 5 s after its last request
  // Requests in the beginning that are not counted, so that models get loaded.
  uint64_t warm_up = 0;
  NoiseOptions noise;
  uint64_t seed = 1;
  // In place of `devices` and `pages`; model i then runs on the kinds of which the bits of
  // model_kinds[i modulo their number] are set, half as long on the second in batches of 1
  // and 4 only.
  std::vector<VirtualDevices> kinds{};
  std::vector<uint32_t> model_kinds{};
  std::vector<std::pair<Duration, Targets>> targets{};  // each in force from its time on
};

// Expects that groups take 0.7 of what their segments take alone.
class GroupDurations : public FakeDurationModel {
 public:
  void together(std::span<const std::span<const ExecSegment>> groups, std::span<Duration> durations) const override {
    FakeDurationModel::together(groups, durations);
    for (size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].size() > 1) durations[i] = durations[i].scaled(0.7);
    }
  }
};

// Counts queries that were cut, by what came of them.
struct Cuts {
  uint64_t begun = 0;     // with a range that leaves them unfinished
  uint64_t again = 0;     // times that one was cut once more
  uint64_t moved = 0;     // times that one went on on other lanes
  uint64_t finished = 0;  // whose last range was done
  uint64_t failed = 0;    // of which a range was not
  uint64_t given_up = 0;  // of which a range that was done was the last that was sent
};
class CutWatch : public Observer {
 public:
  void on_action(const Action& action, TimePoint /*now*/) override {
    if (action.range.whole()) return;
    if (action.range.begins()) {
      ++cuts.begun;
    } else {
      cuts.again += action.range.ends() ? 0 : 1;
      const auto before = unfinished_.find(action.rows[0].request);
      ASSERT_NE(before, unfinished_.end());
      cuts.moved += before->second == action.lanes ? 0 : 1;
    }
    unfinished_.erase(action.rows[0].request);
  }
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint /*now*/) override {
    if (action.range.whole()) return;
    if (!outcome.done()) {
      ++cuts.failed;
    } else if (action.range.ends()) {
      ++cuts.finished;
    } else {
      unfinished_[action.rows[0].request] = action.lanes;
    }
  }
  Cuts all() const {
    Cuts result = cuts;
    result.given_up = unfinished_.size();
    return result;
  }
  Cuts cuts;

 private:
  std::map<RequestId, LaneInterval> unfinished_;  // between two ranges
};

// When a device was first fenced for failing.
class FenceWatch : public Observer {
 public:
  void on_device(const DeviceChange& change, TimePoint now) override {
    if (change.state != DeviceState::kLost || change.trouble != DeviceTrouble::kFailing) return;
    at.try_emplace(change.device.value(), now - TimePoint());
  }
  std::map<uint32_t, Duration> at;
};

class Simulation {
 public:
  Simulation(const RegisteredPolicy& policy, const Workload& workload)
      : workload_(workload),
        random_(workload.seed),
        cluster_(loop_,
                 {.seed = workload.seed + 1,
                  .devices = workload.devices,
                  .pages_per_device = workload.pages,
                  .kinds = workload.kinds,
                  .lanes = {.count = workload.lanes},
                  .contexts = workload.contexts,
                  .resources = workload.groups ? std::make_shared<ResourceTable>(workload.models) : nullptr,
                  .noise = workload.noise,
                  .controller = controller_options(workload)},
                 policy.make, [this](const Completion& completion) { on_completion(completion); }) {
    cluster_.controller().add_observer(fences_);
    cluster_.controller().add_observer(cuts_);
    double total = 0;
    for (uint32_t id = 0; id < workload.models; ++id) {
      add(id);
      popularity_.push_back(total += std::pow(id + 1, -workload.skew));
    }
    served_by_model_.resize(workload.models);
  }

  static std::function<std::unique_ptr<DurationModel>()> make_durations(const Workload& workload) {
    if (!workload.groups) return {};
    return [] { return std::make_unique<GroupDurations>(); };
  }

  static ControllerOptions controller_options(const Workload& workload) {
    ControllerOptions options;
    if (workload.health) options.health.emplace();
    options.make_durations = make_durations(workload);
    return options;
  }

  // Until all is over; sees to what holds for every policy and workload.
  void finish() {
    if (!workload_.faults.empty()) cluster_.schedule(workload_.faults);
    for (const auto& [device, model] : workload_.damaged) cluster_.damage(DeviceId(device), ModelId(model));
    for (const auto& [when, targets] : workload_.targets) {
      loop_.at(TimePoint() + when, [this, own = &targets] {
        const Status set = cluster_.set_targets(*own);
        EXPECT_TRUE(set.ok()) << set.message();
      });
    }
    arrive();
    while (workload_.health && sent_ < workload_.requests) loop_.run_until(loop_.now() + Duration::milliseconds(100));
    loop_.run_until(workload_.health ? loop_.now() + Duration::seconds(5) : TimePoint::infinite_future());
    cluster_.checker().check_finished();
    EXPECT_EQ(cluster_.checker().requests(), workload_.requests);
    EXPECT_EQ(completions_, workload_.requests);
    EXPECT_TRUE(cluster_.pages_agree());
    EXPECT_EQ(cluster_.controller().proposals_rejected(), 0u);
    EXPECT_EQ(cluster_.controller().queued(), 0u);
    EXPECT_EQ(cluster_.controller().actions_outstanding(), 0u);
  }

  double attainment() const {
    return static_cast<double>(counted_served_) / static_cast<double>(workload_.requests - workload_.warm_up);
  }
  double goodput() {
    return static_cast<double>(cluster_.checker().served()) / (loop_.now() - TimePoint()).to_seconds();
  }
  uint64_t counted_served() const { return counted_served_; }
  const std::map<uint32_t, Duration>& fenced_at() const { return fences_.at; }
  Cuts cuts() const { return cuts_.all(); }
  uint64_t served(uint32_t model) const { return served_by_model_[model]; }
  VirtualCluster& cluster() { return cluster_; }
  VirtualLoop& loop() { return loop_; }

 private:
  std::shared_ptr<const ModelInfo> model(uint32_t id) const {
    std::shared_ptr<ModelInfo> model =
        make_model(id, workload_.profiles[id % workload_.profiles.size()], workload_.buckets);
    for (int i = 1; workload_.groups && i <= 20; ++i) model->only().operator_ends.push_back(i / 20.0);
    if (!workload_.kinds.empty()) set_kinds(*model, workload_.model_kinds[id % workload_.model_kinds.size()]);
    return model;
  }

  void set_kinds(ModelInfo& model, uint32_t kinds) const {
    const Runnable first = model.only();
    Runnable second{
        .kind = workload_.kinds[1].kind, .batch_sizes = {1, 4}, .pages = 2 * first.pages, .seed_load = first.seed_load};
    for (const auto& seeds : first.seed_exec) second.seed_exec.push_back({seeds[0] / 2, seeds[2] / 2});
    model.runnables.clear();
    if ((kinds & 1) != 0) model.runnables.push_back(first);
    if ((kinds & 2) != 0) model.runnables.push_back(second);
  }

  void add(uint32_t id) {
    if (workload_.next_size_after == Duration()) return cluster_.add_model(model(id));
    cluster_.add_unready_model(model(id));
    extend_later(id);
  }

  void extend_later(uint32_t id) {
    loop_.at(loop_.now() + workload_.next_size_after, [this, id] {
      const size_t ready = cluster_.controller().cluster().model(ModelId(id)).only().batch_sizes.size() + 1;
      cluster_.extend_model(std::make_shared<const ModelInfo>(with_batch_sizes(*model(id), ready)));
      if (ready < model(id)->only().batch_sizes.size()) extend_later(id);
    });
  }

  void arrive() {
    if (sent_ == workload_.requests) return;
    ++sent_;
    if (sent_ == workload_.removed_at) cluster_.remove_model(ModelId(1));
    const double drawn = random_.uniform() * popularity_.back();
    uint32_t model = 0;
    while (popularity_[model] < drawn) ++model;
    const RequestId id(sent_ * kIdFactor);
    const Duration slo = workload_.slos[random_.below(workload_.slos.size())];
    const auto bucket = static_cast<uint16_t>(random_.below(workload_.buckets));
    cluster_.submit({.id = id,
                     .model = ModelId(model),
                     .bucket = BucketId(bucket),
                     .payload = PayloadHandle(sent_),
                     .arrival = loop_.now(),
                     .deadline = slo == Duration::max() ? TimePoint::infinite_future() : loop_.now() + slo});
    if (workload_.cancelled > 0 && random_.uniform() < workload_.cancelled) cluster_.cancel(id);
    loop_.at(loop_.now() + Duration::from_seconds(random_.exponential() / workload_.rate), [this] { arrive(); });
  }

  void on_completion(const Completion& completion) {
    ++completions_;
    if (!completion.served()) return;
    ++served_by_model_[completion.model.value()];
    if (completion.payload.value() > workload_.warm_up) ++counted_served_;
  }

  Workload workload_;
  Random random_;
  VirtualLoop loop_;
  std::vector<double> popularity_;
  uint64_t sent_ = 0;
  uint64_t completions_ = 0;
  uint64_t counted_served_ = 0;
  std::vector<uint64_t> served_by_model_;
  FenceWatch fences_;
  CutWatch cuts_;
  VirtualCluster cluster_;
};

class PoliciesTest : public ::testing::TestWithParam<RegisteredPolicy> {
 protected:
  // Prints what came of it, so that policies can be compared.
  static double attainment_of(const Workload& workload) {
    Simulation run(GetParam(), workload);
    run.finish();
    Checker& checker = run.cluster().checker();
    std::printf("attainment %.4f goodput %.0f/s expired %lu late %lu loads %lu execs %lu\n", run.attainment(),
                run.goodput(), checker.refused(Refusal::kExpired), checker.refused(Refusal::kLate), checker.loads(),
                checker.execs());
    return run.attainment();
  }
};

TEST_P(PoliciesTest, ServesAlmostAllAtLowLoad) { EXPECT_GT(attainment_of({.rate = 100, .warm_up = 1000}), 0.99); }

TEST_P(PoliciesTest, SpreadsOverDevices) {
  // More than one device can do, one request at a time; less than four.
  EXPECT_GT(attainment_of({.devices = 4, .pages = 7 * 6, .rate = 600, .skew = 0.5, .warm_up = 2000}), 0.97);
}

// The checker and finish() see to it that no lane does two things at once.
TEST_P(PoliciesTest, RunsOnDevicesWithLanes) {
  for (const uint32_t lanes : {2u, 3u, 8u}) {
    EXPECT_GT(attainment_of({.lanes = lanes, .contexts = 8, .buckets = 2, .rate = 100, .warm_up = 1000}), 0.98)
        << lanes;
    attainment_of(
        {.devices = 2, .lanes = lanes, .contexts = 8, .rate = 1200, .skew = 0.5, .cancelled = 0.1, .removed_at = 5000});
  }
}

// The checker and finish() see to it that nothing is placed where it cannot run.
TEST_P(PoliciesTest, PlacesModelsOnlyOnDevicesOfTheirKinds) {
  const std::vector<VirtualDevices> kinds{{"cpu", 2, 7 * 3}, {"gpu", 1, 14 * 3}, {"cpu:4", 1, 7 * 8}};
  const Workload workload{
      .models = 9, .rate = 250, .skew = 0.3, .warm_up = 2000, .kinds = kinds, .model_kinds = {1, 2, 3}};
  Simulation run(GetParam(), workload);
  run.finish();
  for (uint32_t model = 0; model < workload.models; ++model) EXPECT_GT(run.served(model), 0u) << "model " << model;
  std::printf("attainment %.4f\n", run.attainment());
  EXPECT_GT(run.attainment(), 0.9);
  const std::vector<DeviceModel>& devices = run.cluster().controller().cluster().devices;
  EXPECT_EQ(devices.back().pages_used(), 0u) << "no model runs on its kind";
}

// Neither kind of device waits for what the other lacks.
TEST_P(PoliciesTest, TwoKindsServeTogetherWhatTheyServeApart) {
  const VirtualDevices cpus{"cpu", 2, 7 * 3};
  const VirtualDevices gpus{"gpu", 1, 14 * 3};
  const auto served = [](const VirtualDevices& first, const VirtualDevices& second, double rate, uint64_t requests,
                         const std::vector<uint32_t>& model_kinds) {
    Simulation run(GetParam(), {.models = 10,
                                .rate = rate,
                                .skew = 0,
                                .requests = requests,
                                .kinds = {first, second},
                                .model_kinds = model_kinds});
    run.finish();
    return static_cast<double>(run.cluster().checker().served());
  };
  const double together = served(cpus, gpus, 600, 12'000, {1, 2});
  const double apart = served(cpus, {"gpu", 0, 1}, 300, 6'000, {1}) + served({"cpu", 0, 1}, gpus, 300, 6'000, {2});
  std::printf("together %.0f apart %.0f\n", together, apart);
  EXPECT_GT(together, apart * 0.95);
}

TEST_P(PoliciesTest, KeepsWorkingAtThreeTimesItsCapacity) {
  // One request at a time is 383/s, the largest batches are 1,021/s.
  Simulation run(GetParam(), {.models = 5, .rate = 3000, .requests = 30'000});
  run.finish();
  std::printf("goodput %.0f/s\n", run.goodput());
  EXPECT_GT(run.goodput(), 0.8 * 383);
}

TEST_P(PoliciesTest, ServesModelsThatDoNotFitThePageCacheTogether) {
  const Workload workload{.models = 16, .pages = 7 * 6, .rate = 40, .requests = 6000};
  Simulation run(GetParam(), workload);
  run.finish();
  std::printf("attainment %.4f\n", run.attainment());
  for (uint32_t model = 0; model < workload.models; ++model) EXPECT_GT(run.served(model), 0u) << model;
  EXPECT_GT(run.attainment(), 0.85);
}

TEST_P(PoliciesTest, AnswersEveryBestEffortRequest) {
  EXPECT_EQ(attainment_of({.models = 20, .pages = 7 * 4, .rate = 40, .slos = {Duration::max()}, .requests = 4000}), 1);
}

TEST_P(PoliciesTest, MixesSlosBestEffortBucketsAndKindsOfModels) {
  EXPECT_GT(attainment_of({.profiles = {kResNet50, kResNet18, kDenseNet169},
                           .models = 9,
                           .devices = 2,
                           .pages = 5 * 9,
                           .buckets = 2,
                           .rate = 150,
                           .slos = {Duration::milliseconds(50), Duration::milliseconds(250), Duration::max()},
                           .requests = 15'000,
                           .warm_up = 2000}),
            0.9);
}

TEST_P(PoliciesTest, SurvivesOutliersAndCancellations) {
  Workload workload{.devices = 2, .rate = 200, .requests = 15'000, .cancelled = 0.1};
  workload.noise.outlier_probability = 0.005;
  workload.noise.outlier_factor = 10;
  EXPECT_GT(attainment_of(workload), 0.5);
}

TEST_P(PoliciesTest, FollowsADeviceThatSlowsDown) {
  Workload workload{.rate = 100, .warm_up = 1000};
  workload.noise.exec_drift = 0.001;
  EXPECT_GT(attainment_of(workload), 0.97);
}

TEST_P(PoliciesTest, RefusesWhatCannotBeMetAndRecovers) {
  // Shorter than one EXEC: nothing can be served, and nothing must hang.
  EXPECT_LT(attainment_of({.models = 2, .slos = {Duration::microseconds(2500)}, .requests = 2000}), 0.01);
}

TEST_P(PoliciesTest, RemovesAModelUnderTraffic) {
  Simulation run(GetParam(), {.models = 4, .pages = 7 * 3, .rate = 150, .requests = 4000, .removed_at = 2000});
  run.finish();
  EXPECT_TRUE(run.cluster().controller().model_gone(ModelId(1)));
  EXPECT_GT(run.cluster().checker().refused(Refusal::kUnloaded), 100u);
  EXPECT_GT(run.served(1), 0u);
  EXPECT_GT(run.served(2), 100u);
}

// What is not ready is never proposed (finish() sees to it), and what has become ready
// is used as if it had been from the beginning: one request at a time is 383/s.
TEST_P(PoliciesTest, UsesBatchSizesFromWhenTheyAreReady) {
  Workload workload{.models = 5, .rate = 550, .requests = 6000, .warm_up = 1500};
  const double ready = attainment_of(workload);
  workload.next_size_after = Duration::milliseconds(250);
  EXPECT_GT(attainment_of(workload), ready - 0.02);
}

// One of four devices is cut off under load, found by its silence, and joins again
// with what its pages hold.
TEST_P(PoliciesTest, ServesOnWithoutADeviceAndTakesItBack) {
  Workload workload{.devices = 4, .pages = 7 * 6, .rate = 400, .skew = 0.5, .requests = 3200, .warm_up = 400};
  workload.faults = {
      {.kind = FaultKind::kPartition, .device = 1, .at = Duration::seconds(3), .length = Duration::seconds(2)}};
  workload.health = true;
  Simulation run(GetParam(), workload);
  run.finish();
  std::printf("attainment %.4f\n", run.attainment());
  EXPECT_GT(run.attainment(), 0.96);
  const DeviceModel& device = run.cluster().controller().cluster().device(DeviceId(1));
  EXPECT_TRUE(device.up());
  EXPECT_FALSE(device.loaded().empty());
}

struct Failure {
  const char* what;
  bool loads;
  bool execs;
  Duration from;
};

// One of two devices answers with errors, and so is always the first to be free: it is
// fenced, and the other serves what it could serve alone. A third of the models fit one.
void check_failing_device(const RegisteredPolicy& policy, const Workload& alone) {
  Simulation other(policy, alone);
  other.finish();
  const std::vector<Failure> failures{{"LOAD", true, false, Duration()},
                                      {"LOAD", true, false, Duration::seconds(3)},
                                      {"EXEC", false, true, Duration()},
                                      {"EXEC", false, true, Duration::seconds(3)},
                                      {"both", true, true, Duration::seconds(3)}};
  for (const Failure& failure : failures) {
    Workload workload = alone;
    workload.devices = 2;
    workload.health = true;
    workload.faults = {{.kind = FaultKind::kFail,
                        .device = 0,
                        .at = failure.from,
                        .length = Duration::seconds(60),
                        .loads_fail = failure.loads,
                        .execs_fail = failure.execs}};
    Simulation both(policy, workload);
    both.finish();
    SCOPED_TRACE(std::string(failure.what) + " from " + std::to_string(failure.from.to_seconds()));
    ASSERT_TRUE(both.fenced_at().contains(0));
    const Duration fenced = both.fenced_at().at(0) - failure.from;
    std::printf("%s from %.0f s: served %lu, the other alone %lu; fenced after %.1f ms; %lu failures\n", failure.what,
                failure.from.to_seconds(), both.counted_served(), other.counted_served(), fenced.to_milliseconds(),
                both.cluster().checker().failures());
    EXPECT_GE(static_cast<double>(both.counted_served()), 0.99 * static_cast<double>(other.counted_served()));
    EXPECT_LT(fenced, Duration::seconds(1));
    EXPECT_FALSE(both.fenced_at().contains(1));
  }
}

TEST_P(PoliciesTest, ADeviceThatFailsTakesNoWorkFromTheOther) {
  check_failing_device(GetParam(), {.models = 12, .pages = 7 * 4, .rate = 90, .requests = 1800});
}

// As much as the other can do.
TEST_P(PoliciesTest, ADeviceThatFailsTakesNoWorkFromAnotherThatIsFull) {
  check_failing_device(GetParam(), {.models = 12, .pages = 7 * 4, .rate = 350, .requests = 7000});
}

// A package that is damaged on one of two devices: the other serves the model, and the
// device the other models.
TEST_P(PoliciesTest, ADamagedModelCostsNoDevice) {
  Workload workload{.models = 10, .devices = 2, .pages = 7 * 4, .rate = 100, .skew = 0.2, .requests = 2000};
  workload.warm_up = 300;
  workload.health = true;
  workload.damaged = {{0, 1}};
  Simulation run(GetParam(), workload);
  run.finish();
  std::printf("attainment %.4f, of the damaged model %lu; %lu failures\n", run.attainment(), run.served(1),
              run.cluster().checker().failures());
  EXPECT_GT(run.attainment(), 0.97);
  EXPECT_TRUE(run.fenced_at().empty());
  EXPECT_GE(run.cluster().checker().failures(), 1u);
  EXPECT_LE(run.cluster().checker().failures(), 10u) << "attempts become rarer";
}

// Its last device goes, and with it what it did; then another comes, with nothing.
TEST_P(PoliciesTest, WaitsForADeviceWhereThereIsNone) {
  Workload workload{.models = 4, .rate = 200, .slos = {Duration::milliseconds(100), Duration::max()}, .requests = 1000};
  workload.faults = {
      {.kind = FaultKind::kKill, .device = 0, .at = Duration::seconds(2), .length = Duration::milliseconds(500)}};
  Simulation run(GetParam(), workload);
  run.finish();
  EXPECT_GT(run.cluster().checker().refused(Refusal::kWorkerLost), 50u);
  EXPECT_GT(run.attainment(), 0.75);
}

// Faults of all kinds, one after another and at the same time.
TEST_P(PoliciesTest, KeepsItsPromisesWhateverGoesWrong) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Workload workload{.profiles = {kResNet50, kTiny, kResNet18},
                      .models = static_cast<uint32_t>(2 + random.below(12)),
                      .devices = 3,
                      .pages = static_cast<uint32_t>(14 + random.below(30)),
                      .rate = 100 + 600 * random.uniform(),
                      .slos = {Duration::milliseconds(50), Duration::max()},
                      .requests = 1500,
                      .cancelled = 0.1 * random.uniform(),
                      .seed = seed};
    workload.health = true;
    for (uint32_t device = 0; device < workload.devices; ++device) {
      const auto length = Duration::milliseconds(static_cast<int64_t>(20 + random.below(1500)));
      const auto at = Duration::milliseconds(static_cast<int64_t>(200 + random.below(2000)));
      workload.faults.push_back(
          {.kind = static_cast<FaultKind>(random.below(8)), .device = device, .at = at, .length = length});
    }
    Simulation(GetParam(), workload).finish();
  }
}

TEST_P(PoliciesTest, SendsNoMoreThanADeviceTakes) {
  Simulation run(GetParam(), {.profiles = {kTiny}, .models = 40, .pages = 10, .rate = 30'000, .requests = 30'000});
  run.finish();
  EXPECT_GT(run.attainment(), 0.2);
}

// As a client that sends no deadlines sees it: 400 requests at one instant.
TEST_P(PoliciesTest, AnswersEqualsInTheOrderOfAdmission) {
  VirtualLoop loop;
  std::vector<Completion> answers;
  VirtualCluster cluster(loop, {.pages_per_device = 7, .controller = {}}, GetParam().make,
                         [&](const Completion& completion) { answers.push_back(completion); });
  cluster.add_model(make_model(0, kResNet50));
  for (uint64_t i = 0; i < 400; ++i) {
    cluster.submit({.id = RequestId((i + 1) * kIdFactor), .model = ModelId(0), .payload = PayloadHandle(i)});
  }
  loop.run_until(TimePoint::infinite_future());
  ASSERT_EQ(answers.size(), 400u);
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_TRUE(answers[i].served());
    EXPECT_EQ(answers[i].payload, PayloadHandle(i));
  }
}

// Whatever comes together by chance: what finish() sees to holds.
TEST_P(PoliciesTest, KeepsItsPromisesInWorkloadsDrawnAtRandom) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::vector<Duration> slos{Duration::milliseconds(5), Duration::milliseconds(20), Duration::milliseconds(100),
                                     Duration::seconds(1), Duration::max()};
    Workload workload{.profiles = {kResNet50, kTiny, kResNet18, kDenseNet169},
                      .models = static_cast<uint32_t>(2 + random.below(30)),
                      .devices = static_cast<uint32_t>(1 + random.below(4)),
                      .pages = static_cast<uint32_t>(7 + random.below(60)),
                      .buckets = static_cast<uint16_t>(1 + random.below(3)),
                      .rate = 30 * std::pow(2, random.uniform() * 8),
                      .slos = {slos[random.below(5)], slos[random.below(5)]},
                      .skew = 2 * random.uniform(),
                      .requests = 1500,
                      .cancelled = 0.2 * random.uniform(),
                      .removed_at = random.below(1500),
                      .seed = seed};
    workload.noise.outlier_probability = 0.01 * random.uniform();
    workload.noise.outlier_factor = 1 + 30 * random.uniform();
    workload.noise.exec_drift = 0.001 * random.uniform();
    Simulation(GetParam(), workload).finish();
  }
}

// First more than can begin at once, then offline requests of a model that every policy
// would rather run (short, and earlier), then others.
TEST_P(PoliciesTest, OfflineRequestsWaitForAllOthers) {
  VirtualLoop loop;
  TimePoint offline_began = TimePoint::infinite_future();
  TimePoint others_began;
  uint64_t served = 0;
  VirtualCluster cluster(loop, {.devices = 1, .pages_per_device = 64}, GetParam().make,
                         [&](const Completion& completion) {
                           served += completion.served() ? 1 : 0;
                           if (completion.payload.value() < 10) return;  // these loaded the models
                           TimePoint& began = completion.model == ModelId(0) ? offline_began : others_began;
                           began = completion.model == ModelId(0) ? std::min(began, completion.exec_start)
                                                                  : std::max(began, completion.exec_start);
                         });
  uint64_t sent = 0;
  const auto submit = [&](uint32_t model, bool offline) {
    ++sent;
    cluster.submit({.id = RequestId(sent * kIdFactor),
                    .model = ModelId(model),
                    .payload = PayloadHandle(sent),
                    .arrival = loop.now(),
                    .offline = offline});
  };
  const Profile profiles[] = {kTiny, kResNet50, kResNet18};
  for (uint32_t model = 0; model < 3; ++model) {
    cluster.add_model(make_model(model, profiles[model]));
    submit(model, false);
  }
  while (sent < 10) submit(1, false);
  loop.run_until(TimePoint() + Duration::seconds(2));
  for (int i = 0; i < 200; ++i) submit(1, false);
  for (int i = 0; i < 20; ++i) submit(0, true);
  for (int i = 0; i < 100; ++i) submit(2, false);
  loop.run_until(TimePoint::infinite_future());
  cluster.checker().check_finished();
  EXPECT_EQ(served, sent);
  EXPECT_GT(offline_began, others_began);
  EXPECT_FALSE(offline_began.is_infinite());
}

TEST_P(PoliciesTest, DrainsUnderOverload) {
  Simulation run(GetParam(), {.models = 4, .rate = 2000, .requests = 4000});
  run.loop().at(TimePoint() + Duration::seconds(1), [&] { run.cluster().controller().drain(run.loop().now()); });
  run.finish();
  EXPECT_GT(run.cluster().checker().refused(Refusal::kDraining), 1000u);
}

TEST_P(PoliciesTest, SameSeedGivesTheSameRunAndAnotherSeedAnother) {
  Workload workload{.models = 20, .devices = 2, .rate = 400, .requests = 5000};
  const auto hash = [&] {
    Simulation run(GetParam(), workload);
    run.finish();
    return run.cluster().event_hash();
  };
  const uint64_t first = hash();
  EXPECT_EQ(first, hash());
  workload.seed = 2;
  EXPECT_NE(first, hash());
}

// ---- Targets ----

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
  static uint32_t copies(Simulation& run, uint32_t model) { return run.cluster().controller().cluster().copies[model]; }
  // Those that hold it, on their way in or out too.
  static std::vector<uint32_t> holders(Simulation& run, uint32_t model) {
    std::vector<uint32_t> found;
    for (const DeviceModel& device : run.cluster().controller().cluster().devices) {
      if (device.held(ModelId(model)) != Residency::kAbsent) found.push_back(device.id().value());
    }
    return found;
  }
  void at(Simulation& run, double seconds, std::function<void()> look) {
    run.loop().at(TimePoint() + Duration::from_seconds(seconds),
                  [own = &looks_.emplace_back(std::move(look))] { (*own)(); });
  }

 private:
  std::deque<std::function<void()>> looks_;
};

TEST_P(PolicyTargetsTest, LoadsTheLeastCopiesWithoutRequests) {
  Workload workload{.models = 30, .devices = 3, .pages = 7 * 32, .requests = 0};
  Targets all;
  for (uint32_t id = 0; id < 30; ++id)
    all.models[ModelId(id)] = {.copies_least = 1 + id % 3, .copies_most = 1 + id % 3};
  workload.targets = {{Duration(), all}};
  Simulation run(GetParam(), workload);
  run.finish();
  for (uint32_t id = 0; id < 30; ++id) EXPECT_EQ(copies(run, id), 1 + id % 3) << "model " << id;
}

TEST_P(PolicyTargetsTest, NeverExceedsTheMostCopies) {
  Workload workload{.models = 2, .devices = 4, .rate = 2800, .skew = 4, .requests = 9000};
  workload.slos = {Duration::milliseconds(30)};
  const auto most_copies = [&] {
    TargetWatch watch;
    Simulation run(GetParam(), workload);
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
    Workload workload{.models = 2, .devices = 4, .rate = 700, .skew = 3, .requests = requests};
    workload.targets = {{Duration(), targets(0, {.copies_least = 4})},
                        {Duration::seconds(2), targets(0, {.copies_most = 1})},
                        {Duration::seconds(3), targets(0, {.copies_most = 0})}};
    Simulation run(GetParam(), workload);
    at(run, 1.9, [&] { EXPECT_EQ(holders(run, 0).size(), 4u); });
    at(run, 2.3, [&] { EXPECT_EQ(holders(run, 0).size(), 1u); });
    at(run, 3.3, [&] { EXPECT_EQ(holders(run, 0).size(), 0u); });
    run.finish();
    EXPECT_EQ(run.cluster().checker().refused(Refusal::kUnloaded) > 300, requests > 0);
  }
}

TEST_P(PolicyTargetsTest, PlacesModelsOnTheKindsThatAreAllowed) {
  Workload workload{.models = 4, .rate = 300, .skew = 0, .requests = 1500};
  workload.kinds = {{"cpu", 2, 7 * 4}, {"gpu", 1, 14 * 4}};
  workload.model_kinds = {3, 3, 1, 2};
  workload.slos = {Duration::milliseconds(100), Duration::max()};
  workload.targets = {{Duration::seconds(1), targets(0, {.kinds = {"gpu"}})},
                      {Duration::seconds(2), targets(0, {.kinds = {"cpu"}})},
                      {Duration::seconds(3), targets(2, {.copies_least = 1, .kinds = {"gpu"}})},
                      {Duration::seconds(4), {}}};
  Simulation run(GetParam(), workload);
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
  Workload workload{.models = 2, .rate = 1500, .skew = 0, .requests = 6000};
  TargetWatch watch;
  watch.from = TimePoint() + Duration::seconds(1);
  workload.targets = {{Duration::seconds(1), {{{ModelId(0), {.batch_most = 3}}, {ModelId(1), {.batch_most = 1}}}}}};
  Simulation run(GetParam(), workload);
  run.cluster().controller().add_observer(watch);
  run.finish();
  EXPECT_LE(watch.batch, 2u);
  EXPECT_GT(run.served(0) + run.served(1), 1000u);

  workload.targets.emplace_back(Duration::seconds(2), Targets());
  workload.requests = 7000;
  TargetWatch after;
  after.from = TimePoint() + Duration::seconds(2);
  TargetWatch ever;
  Simulation released(GetParam(), workload);
  released.cluster().controller().add_observer(after);
  released.cluster().controller().add_observer(ever);
  released.finish();
  EXPECT_EQ(after.batch, ever.batch) << "as large as before";
}

TEST_P(PolicyTargetsTest, KeepsRequiredCopiesUnderMemoryPressure) {
  Workload workload{.models = 16, .devices = 2, .pages = 7 * 4, .rate = 80, .skew = 0.2, .requests = 1600};
  workload.targets = {{Duration::seconds(2), targets(15, {.copies_least = 2})}};
  TargetWatch watch;
  Simulation run(GetParam(), workload);
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
  Workload workload{.models = 4, .pages = 7 * 5, .rate = 150, .requests = 1200, .removed_at = 500};
  workload.targets = {{Duration(), targets(1, {.copies_least = 1})}};
  Simulation run(GetParam(), workload);
  at(run, 1, [&] { EXPECT_EQ(copies(run, 1), 1u); });
  run.finish();
  EXPECT_TRUE(run.cluster().controller().model_gone(ModelId(1)));
  EXPECT_EQ(run.cluster().set_targets(workload.targets[0].second).code(), StatusCode::kNotFound);
}

TEST_P(PolicyTargetsTest, TargetsThatCannotBeMetStallNoOtherModel) {
  Workload workload{.models = 6, .devices = 2, .pages = 7 * 6, .rate = 200, .requests = 3000, .warm_up = 500};
  // There are two devices, and no room for all of the others.
  workload.targets = {{Duration(),
                       {{{ModelId(0), {.copies_least = 10}},
                         {ModelId(1), {.copies_least = 2, .copies_most = 2}},
                         {ModelId(2), {.copies_least = 2}},
                         {ModelId(3), {.copies_least = 2}},
                         {ModelId(4), {.copies_least = 2}}}}}};
  Simulation run(GetParam(), workload);
  run.finish();
  EXPECT_EQ(copies(run, 0), 2u);
  EXPECT_GT(run.served(5), 20u);
  std::printf("attainment %.4f\n", run.attainment());
  EXPECT_GT(run.attainment(), 0.95);
}

TEST_P(PolicyTargetsTest, RestoresTheLeastCopiesAfterALostDevice) {
  Workload workload{.models = 4, .devices = 3, .pages = 7 * 5, .rate = 150, .requests = 900};
  workload.health = true;
  workload.faults = {
      {.kind = FaultKind::kKill, .device = 0, .at = Duration::seconds(2), .length = Duration::seconds(2)},
      {.kind = FaultKind::kAway, .device = 1, .at = Duration::seconds(6), .length = Duration::seconds(1)}};
  workload.targets = {{Duration(), targets(3, {.copies_least = 2, .copies_most = 2})}};
  Simulation run(GetParam(), workload);
  at(run, 1.9, [&] { EXPECT_EQ(copies(run, 3), 2u); });
  at(run, 3.9, [&] { EXPECT_EQ(copies(run, 3), 2u); });
  at(run, 6.9, [&] { EXPECT_EQ(copies(run, 3), 2u); });
  run.finish();
  EXPECT_EQ(copies(run, 3), 2u) << "no more than two when devices are back";
}

TEST_P(PolicyTargetsTest, TargetsThatConstrainNothingChangeNothing) {
  const Workload workload{.models = 20, .devices = 2, .rate = 400, .requests = 3000};
  const auto hash = [&](bool set) {
    Simulation run(GetParam(), workload);
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
    Workload workload{.profiles = {kResNet50, kTiny, kResNet18},
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
      Simulation run(GetParam(), workload);
      run.finish();
      return run.cluster().event_hash();
    };
    EXPECT_EQ(hash(), hash());
  }
}

// Ranges, contexts and what becomes of unfinished batches, while devices fail, die and are cut
// off, targets change, a model goes and predictions are too short. The checker sees to what
// holds of contexts.
// Least numbers are half of what there are: a change of the policy changes them, one that breaks
// any way in which a cut query goes on or ends leaves none.
TEST(OverlapTest, CutsQueriesWhateverGoesWrong) {
  Cuts all;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Workload workload{.profiles = {kResNet50, kDenseNet169, kResNet18},
                      .models = 6,
                      .devices = 3,
                      .lanes = 4,
                      .contexts = 8,
                      .groups = true,
                      .rate = 1000,
                      .slos = {Duration::milliseconds(30), Duration::milliseconds(100), Duration::max()},
                      .requests = 5000,
                      .cancelled = 0.05,
                      .removed_at = 3000,
                      .health = true,
                      .seed = seed};
    Targets few;
    few.models[ModelId(0)] = {.copies_most = 1};
    few.models[ModelId(2)] = {.copies_most = 0};
    workload.targets = {{Duration::seconds(4), few}, {Duration::seconds(6), {}}};
    workload.faults = {
        {.kind = FaultKind::kKill, .device = 0, .at = Duration::seconds(2), .length = Duration::seconds(1)},
        {.kind = FaultKind::kPartition, .device = 1, .at = Duration::seconds(4), .length = Duration::seconds(1)},
        {.kind = FaultKind::kAway, .device = 2, .at = Duration::seconds(6), .length = Duration::seconds(1)},
        {.kind = FaultKind::kFail,
         .device = 0,
         .at = Duration::seconds(7),
         .length = Duration::seconds(1),
         .loads_fail = false,
         .execs_fail = true}};
    Simulation run(find_policy("overlap").value(), workload);
    run.finish();
    const Cuts cuts = run.cuts();
    std::printf("attainment %.4f, %lu cut, again %lu, moved %lu, finished %lu, failed %lu, given up %lu\n",
                run.attainment(), cuts.begun, cuts.again, cuts.moved, cuts.finished, cuts.failed, cuts.given_up);
    EXPECT_EQ(cuts.begun, cuts.finished + cuts.failed + cuts.given_up) << "each ends in one way";
    EXPECT_GT(run.attainment(), 0.4);
    for (const auto count : {&Cuts::begun, &Cuts::again, &Cuts::moved, &Cuts::finished, &Cuts::failed, &Cuts::given_up})
      all.*count += cuts.*count;
  }
  EXPECT_GT(all.begun, 270u);
  EXPECT_GT(all.again, 17u);
  EXPECT_GT(all.moved, 110u);
  EXPECT_GT(all.finished, 160u);
  EXPECT_GT(all.failed, 0u);
  EXPECT_GT(all.given_up, 100u);
}

INSTANTIATE_TEST_SUITE_P(Policies, PolicyTargetsTest, ::testing::ValuesIn(policies()),
                         [](const auto& policy) { return policy.param.name; });

INSTANTIATE_TEST_SUITE_P(Policies, PoliciesTest, ::testing::ValuesIn(policies()),
                         [](const auto& policy) { return policy.param.name; });

}  // namespace
}  // namespace foliot
