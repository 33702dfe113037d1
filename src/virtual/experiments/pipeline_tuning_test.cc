// A pipeline whose plan is tuned while the real controller and policies serve it, in virtual time.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/policies/registry.h"
#include "foundation/base/random.h"
#include "foundation/base/test_seed.h"
#include "foundation/base/test_time.h"
#include "foundation/core/stage_visit.h"
#include "planning/pipelines/estimator.h"
#include "planning/pipelines/pipeline_tuners.h"
#include "planning/pipelines/planner.h"
#include "planning/pipelines/test_pipeline.h"
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

// Of the replicas that the arrivals of each second need in whole batches.
double needed_dollars(const PlannedPipeline& pipeline, const Configuration& planned,
                      const std::vector<Duration>& arrivals) {
  std::map<int64_t, double> counts;
  for (const Duration at : arrivals) counts[at.nanoseconds() / 1'000'000'000] += 1;
  double dollars = 0;
  for (const auto& [second, count] : counts) {
    for (size_t i = 0; i < planned.stages.size(); ++i) {
      const PlannedStage& stage = pipeline.stages[i];
      const double of_one = throughput(stage, planned.stages[i]) / planned.stages[i].replicas;
      dollars += std::max(1.0, std::ceil(count / of_one)) * kind_of(stage, planned.stages[i]).price / 3600;
    }
  }
  return dollars;
}

// Devices have one page, so that a copy has a device of its own, as InferLine's replicas have.
class TunedCluster : private Observer {
 public:
  explicit TunedCluster(const PlannedPipeline& pipeline, Duration slo = kSlo, uint32_t devices = kDevices,
                        const TunerMethod& method = TunerOptions::by_ratio(), Duration load = ms(20))
      : slo_(slo),
        devices_(devices),
        load_(load),
        tuners_(method),
        cluster_(loop_, {.devices = devices, .pages_per_device = 1}, find_policy("foliot")->make,
                 [this](const Completion& completion) { served_ += completion.served() ? 1 : 0; }) {
    cluster_.controller().add_observer(*this);
    auto info = std::make_shared<PipelineInfo>();
    info->id = PipelineId(1);
    info->name = pipeline.name;
    for (uint32_t i = 0; i < pipeline.stages.size(); ++i) {
      PipelineStage stage{.name = pipeline.stages[i].name, .model = add_model(i, pipeline.stages[i])};
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
    loop_.run_until(TimePoint() + arrivals.back() + slo_);
    return static_cast<double>(served_ - before) / static_cast<double>(arrivals.size());
  }
  // From now on there are no more copies than the tuner wants.
  void make_exact() { exact_ = true; }
  double dollars() const { return dollars_; }  // of the copies that were wanted
  size_t changes() const { return changes_; }  // of what is wanted
  uint32_t copies(uint32_t model) { return cluster_.controller().cluster().copies[model]; }
  std::vector<uint32_t> targets() {
    std::vector<uint32_t> least;
    for (uint32_t i = 0; i < 2; ++i) least.push_back(cluster_.controller().cluster().target(ModelId(i)).copies_least);
    return least;
  }

 private:
  std::shared_ptr<const ModelInfo> add_model(uint32_t id, const PlannedStage& stage) {
    const StageKind& kind = stage.kinds[0];
    auto model = std::make_shared<ModelInfo>();
    model->id = ModelId(id);
    model->name = stage.name;
    model->buckets.resize(1);
    model->only().batch_sizes = kind.batch_sizes;
    model->only().seed_load = load_;
    std::vector<Duration>& seeds = model->only().seed_exec.emplace_back();
    for (const uint32_t size : kind.batch_sizes) seeds.push_back(Duration::nanoseconds(kind.durations_ns[size]));
    cluster_.add_model(model);
    prices_.push_back(kind.price);
    return model;
  }
  void submit() {
    cluster_.submit({.id = RequestId(nth_run(next_++)),
                     .pipeline = PipelineId(1),
                     .arrival = loop_.now(),
                     .deadline = loop_.now() + slo_});
  }
  void step() {
    PipelineTuners::Step step = tuners_.step({{"cpu", devices_}}, loop_.now());
    EXPECT_TRUE(step.troubles.empty()) << step.troubles.begin()->second;
    for (auto& [model, target] : step.targets) {
      if (exact_) target.copies_most = target.copies_least;
      dollars_ += target.copies_least * prices_[model.value()] * kTunerInterval.to_seconds() / 3600;
    }
    if (step.targets != targets_) {
      EXPECT_TRUE(cluster_.set_targets(Targets{step.targets}).ok());
      ++changes_;
    }
    targets_ = std::move(step.targets);
    loop_.at(loop_.now() + kTunerInterval, [this] { this->step(); });
  }
  void on_pipeline(const PipelineInfo& pipeline) override { tuners_.add(TunedPipeline(pipeline)); }
  void on_run(const Request& /*request*/, const PipelineInfo* pipeline, TimePoint now) override {
    tuners_.arrive(pipeline->id, now);
  }

  const Duration slo_;
  const uint32_t devices_;
  const Duration load_;
  VirtualLoop loop_;
  PipelineTuners tuners_;
  std::map<ModelId, ModelTarget> targets_;
  std::vector<double> prices_;  // by models
  bool exact_ = false;
  double dollars_ = 0;
  size_t changes_ = 0;
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

// What is asked for beyond the capacity is refused, and the rest keeps whole batches: in the estimate as by the policy.
TEST(PipelineTuningTest, AnOverloadIsEstimatedAsThePolicyServesIt) {
  const PlannedPipeline pipeline = four_stages();
  const Duration slo = ms(200);
  const Configuration configuration{{{0, 8, 1}, {0, 32, 1}, {0, 8, 2}, {0, 8, 1}}};
  for (const double rate : {300.0, 560.0, 700.0, 900.0}) {
    const std::vector<Duration> arrivals = poisson(rate, Duration::seconds(3), Duration::seconds(33), 5);
    const QueryTrace trace = QueryTrace::draw(pipeline, arrivals, 5);
    Estimator estimator(pipeline, trace, {slo});
    const double estimated = estimator.estimate(configuration, {}, LateQueries::kRefused).attainment();
    TunedCluster cluster(pipeline, slo, 5);
    cluster.tune(tuning_plan(pipeline, configuration, trace));
    const double served = cluster.run(arrivals);
    EXPECT_NEAR(estimated, served, 0.03) << rate << " per second";
  }
}

// The tuner of a plan, and the controller and policy of a server, on the copies that the tuner wants and no others. A
// copy takes a second to load. That of capacity is what the rate of each second needs in whole batches.
TEST(PipelineTuningTest, ReplanKeepsTheGoalOfALongPipelineAsItIsServed) {
  const uint64_t seed = fresh_seed();
  const double rate = 300, seconds = 130;
  const Duration slo = ms(200);
  const PlannedPipeline pipeline = four_stages();
  const QueryTrace sample = QueryTrace::draw(pipeline, gamma_arrivals(rate, 1, Duration::seconds(300), seed), seed);
  const auto planned = plan_pipeline(pipeline, sample, {slo});
  ASSERT_TRUE(planned.ok());
  TuningPlan plan = tuning_plan(pipeline, planned->configuration, sample);
  plan.goal = {slo};
  Random random(seed);
  for (const std::string shape : {"steady", "step", "ramp", "spike"}) {
    const double most = 1.5 + (shape == "spike" ? 0.7 : 2.5) * random.uniform();
    std::vector<Duration> arrivals = shaped_arrivals(shape, rate, most, seconds, random);
    const double needed = needed_dollars(pipeline, planned->configuration, arrivals);
    for (Duration& at : arrivals) at += Duration::seconds(5);  // once the plan is loaded
    TunedCluster cluster(pipeline, slo, kDevices, ReplanOptions::of_server(), Duration::seconds(1));
    cluster.make_exact();
    cluster.tune(plan);
    const double attained = cluster.run(arrivals);
    const std::string what =
        fmt::format("seed {}: {} x{:.1f} {:.2f} %, {:.2f} times what capacity needs, {} changes", seed, shape, most,
                    100 * attained, cluster.dollars() / needed, cluster.changes());
    fmt::print("{}\n", what);
    EXPECT_GE(attained, 0.98) << what;
    EXPECT_LE(cluster.dollars(), 2 * needed) << what;
    EXPECT_LE(cluster.changes(), shape == "steady" ? 2u : 200u) << what;
  }
}

}  // namespace
}  // namespace foliot
