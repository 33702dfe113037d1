// PolicyRun: a policy under a workload of the test in virtual time, with the production code of controller
// and worker, and with checkers that stop at the first broken promise.
#ifndef FOLIOT_CONTROL_POLICIES_TEST_POLICY_RUN_H_
#define FOLIOT_CONTROL_POLICIES_TEST_POLICY_RUN_H_

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "control/controller/fake_duration_model.h"
#include "control/policies/registry.h"
#include "foundation/base/random.h"
#include "virtual/world/virtual_cluster.h"

namespace foliot {

inline void PrintTo(const RegisteredPolicy& policy, std::ostream* out) { *out << policy.name; }

// From the V100 profile of Clockwork, Table 1: pages of 16 MB, ms.
struct Profile {
  const char* name;
  uint32_t pages;
  double load;
  std::vector<double> exec;
};
inline const Profile kResNet50{"resnet50", 7, 8.33, {2.61, 3.78, 5.61, 9.13, 15.67}};
inline const Profile kResNet18{"resnet18", 3, 3.81, {1.27, 1.86, 2.73, 4.06, 7.02}};
// So short that the lookahead of most policies is more actions than a device takes.
inline const Profile kTiny{"tiny", 1, 0.2, {0.05, 0.06, 0.08, 0.12, 0.2}};
inline const Profile kDenseNet169{"densenet169", 4, 4.50, {5.18, 6.29, 8.57, 12.82, 21.85}};

// Ids in no order of arrival, as those of front ends: odd, so all are different.
inline constexpr uint64_t kIdFactor = 0x9e3779b97f4a7c15;

inline std::shared_ptr<ModelInfo> make_model(uint32_t id, const Profile& profile, uint16_t buckets = 1) {
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

struct PolicyWorkload {
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

class PolicyRun {
 public:
  PolicyRun(const RegisteredPolicy& policy, const PolicyWorkload& workload)
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

  static std::function<std::unique_ptr<DurationModel>()> make_durations(const PolicyWorkload& workload) {
    if (!workload.groups) return {};
    return [] { return std::make_unique<GroupDurations>(); };
  }

  static ControllerOptions controller_options(const PolicyWorkload& workload) {
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

  PolicyWorkload workload_;
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

}  // namespace foliot

#endif  // FOLIOT_CONTROL_POLICIES_TEST_POLICY_RUN_H_
