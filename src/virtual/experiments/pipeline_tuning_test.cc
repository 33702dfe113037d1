// A pipeline whose plan is tuned while the real controller and policies serve it, in virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/policies/registry.h"
#include "foundation/base/random.h"
#include "foundation/base/test_time.h"
#include "foundation/core/stage_visit.h"
#include "planning/pipelines/pipeline_tuners.h"
#include "planning/pipelines/planner.h"
#include "virtual/world/virtual_cluster.h"

namespace foliot {
namespace {

constexpr uint32_t kDevices = 24;
constexpr Duration kSlo = Duration::milliseconds(150);
constexpr Duration kTunerInterval = Duration::milliseconds(100);

StageKind kind_of_stage(Duration base, Duration each) {
  StageKind kind{"cpu", 1, {}, {0}};
  for (uint32_t size = 1; size <= 8; size *= 2) {
    kind.batch_sizes.push_back(size);
    while (kind.durations_ns.size() <= size) kind.durations_ns.push_back((base + each * size).nanoseconds());
  }
  return kind;
}

// A stage of 12 ms a row and one of 22 ms, less in batches.
PlannedPipeline two_stages() {
  PlannedPipeline pipeline{"animals", {}};
  pipeline.stages.push_back({"first", {}, {}, 1, 1, {kind_of_stage(ms(4), ms(8))}});
  pipeline.stages.push_back({"second", {0}, {{0}}, 1, 1, {kind_of_stage(ms(7), ms(15))}});
  return pipeline;
}

std::vector<Duration> poisson(double rate, Duration from, Duration to, uint64_t seed) {
  Random random(seed);
  std::vector<Duration> arrivals;
  for (Duration at = from;;) {
    at += Duration::from_seconds(random.exponential() / rate);
    if (at >= to) return arrivals;
    arrivals.push_back(at);
  }
}

// Devices have one page, so that a copy has a device of its own, as InferLine's replicas have.
class TunedCluster : private Observer {
 public:
  explicit TunedCluster(const PlannedPipeline& pipeline)
      : cluster_(loop_, {.devices = kDevices, .pages_per_device = 1}, find_policy("foliot")->make,
                 [this](const Completion& completion) { served_ += completion.served() ? 1 : 0; }) {
    cluster_.controller().add_observer(*this);
    auto info = std::make_shared<PipelineInfo>();
    info->id = PipelineId(1);
    info->name = pipeline.name;
    for (uint32_t i = 0; i < pipeline.stages.size(); ++i) {
      PipelineStage stage{.name = pipeline.stages[i].name, .model = add_model(i, pipeline.stages[i].kinds[0])};
      stage.bucket = BucketId(0);
      stage.inputs = {{i == 0 ? TensorSource() : TensorSource{.stage = i - 1}}};
      info->stages.push_back(std::move(stage));
    }
    cluster_.add_pipeline(std::move(info));
  }

  void tune(TuningPlan plan) {
    for (TuningPlan::Stage& stage : plan.stages) stage.model = stage.name;
    std::map<std::string, SavedPlan> plans;
    SavedPlan& saved = plans[plan.pipeline];
    saved.plan = std::move(plan);
    tuners_.set_plans(std::move(plans));
    step();
  }
  // Returns the share that was answered in time.
  double run(const std::vector<Duration>& arrivals) {
    const uint64_t before = served_;
    for (const Duration each : arrivals) loop_.at(TimePoint() + each, [this] { submit(); });
    loop_.run_until(TimePoint() + arrivals.back() + kSlo);
    return static_cast<double>(served_ - before) / static_cast<double>(arrivals.size());
  }
  uint32_t copies(uint32_t model) { return cluster_.controller().cluster().copies[model]; }
  std::vector<uint32_t> targets() {
    std::vector<uint32_t> least;
    for (uint32_t i = 0; i < 2; ++i) least.push_back(cluster_.controller().cluster().target(ModelId(i)).copies_least);
    return least;
  }

 private:
  std::shared_ptr<const ModelInfo> add_model(uint32_t id, const StageKind& kind) {
    auto model = std::make_shared<ModelInfo>();
    model->id = ModelId(id);
    model->name = id == 0 ? "first" : "second";
    model->buckets.resize(1);
    model->only().batch_sizes = kind.batch_sizes;
    model->only().seed_load = ms(20);
    std::vector<Duration>& seeds = model->only().seed_exec.emplace_back();
    for (const uint32_t size : kind.batch_sizes) seeds.push_back(Duration::nanoseconds(kind.durations_ns[size]));
    cluster_.add_model(model);
    return model;
  }
  void submit() {
    cluster_.submit({.id = RequestId(nth_run(next_++)),
                     .pipeline = PipelineId(1),
                     .arrival = loop_.now(),
                     .deadline = loop_.now() + kSlo});
  }
  void step() {
    PipelineTuners::Step step = tuners_.step({{"cpu", kDevices}}, loop_.now());
    EXPECT_TRUE(step.troubles.empty()) << step.troubles.begin()->second;
    if (step.targets != targets_) {
      EXPECT_TRUE(cluster_.set_targets(Targets{step.targets}).ok());
    }
    targets_ = std::move(step.targets);
    loop_.at(loop_.now() + kTunerInterval, [this] { this->step(); });
  }
  void on_pipeline(const PipelineInfo& pipeline) override { tuners_.add(TunedPipeline(pipeline)); }
  void on_run(const Request& /*request*/, const PipelineInfo* pipeline, TimePoint now) override {
    tuners_.arrive(pipeline->id, now);
  }

  VirtualLoop loop_;
  PipelineTuners tuners_{TunerOptions::by_ratio()};
  std::map<ModelId, ModelTarget> targets_;
  uint64_t next_ = 1;
  uint64_t served_ = 0;
  VirtualCluster cluster_;
};

TEST(PipelineTuningTest, TargetsAndCopiesRiseWithTheLoadAndTargetsFallAfterIt) {
  const PlannedPipeline pipeline = two_stages();
  const QueryTrace sample = QueryTrace::draw(pipeline, poisson(100, Duration(), Duration::seconds(120), 1), 1);
  const auto planned = plan_pipeline(pipeline, sample, {kSlo});
  ASSERT_TRUE(planned.ok());
  const std::vector<uint32_t> plan{planned->configuration.stages[0].replicas,
                                   planned->configuration.stages[1].replicas};
  TunedCluster cluster(pipeline);
  cluster.tune(tuning_plan(pipeline, planned->configuration, sample));
  EXPECT_EQ(cluster.targets(), plan);

  const auto seconds = Duration::seconds;
  EXPECT_GE(cluster.run(poisson(100, seconds(1), seconds(40), 2)), 0.99);
  const std::vector<uint32_t> steady = cluster.targets();
  EXPECT_GE(cluster.run(poisson(300, seconds(41), seconds(80), 3)), 0.99);
  const std::vector<uint32_t> risen = cluster.targets();
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_LE(steady[i], plan[i] + 1);
    EXPECT_GE(risen[i], 2 * plan[i]);
    EXPECT_GE(cluster.copies(i), risen[i]);
  }
  EXPECT_GE(cluster.run(poisson(100, seconds(81), seconds(160), 4)), 0.99);
  for (uint32_t i = 0; i < 2; ++i) EXPECT_LE(cluster.targets()[i], plan[i] + 1);
}

}  // namespace
}  // namespace foliot
