#include "virtual/experiments/tuned_pipelines.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "foundation/base/check.h"
#include "foundation/base/random.h"

namespace foliot {
namespace {

// Of the trace that a plan is made for.
constexpr Duration kPlannedLength = Duration::seconds(60);
constexpr uint64_t kPlannedSeed = 1;

StageKind kind_of(const ModelInfo& model) {
  const Runnable& runnable = model.runnables.front();
  const std::vector<Duration>& durations = runnable.seed_exec.front();
  StageKind kind{runnable.kind, 1, runnable.batch_sizes, {0}};
  for (size_t i = 0; i < durations.size(); ++i) {
    kind.durations_ns.resize(runnable.batch_sizes[i] + 1, durations[i].nanoseconds());
  }
  return kind;
}

// Conditions hold for half of the runs; half of the elements that there may be are there.
PlannedPipeline planned_pipeline(const PipelineInfo& info) {
  PlannedPipeline pipeline{info.name, {}};
  for (const PipelineStage& stage : info.stages) {
    const StageEdges edges = edges_of(stage);
    PlannedStage& planned = pipeline.stages.emplace_back(PlannedStage{stage.name, edges.parents, edges.needs});
    planned.probability = stage.requires_all.empty() ? 1 : 0.5;
    planned.counted_by = edges.counted_by;
    planned.kinds = {kind_of(*stage.model)};
    if (stage.for_each) planned.set_mean_visits(stage.for_each->at_most / 2.0);
  }
  pipeline.set_scale_factors();
  return pipeline;
}

// As many replicas as the rate needs in whole batches.
Configuration configuration_of(const PlannedPipeline& pipeline, double rate) {
  Configuration configuration;
  for (const PlannedStage& stage : pipeline.stages) {
    const StageKind& kind = stage.kinds.front();
    const double needed = rate * stage.scale_factor / kind.throughput(kind.batch_most());
    configuration.stages.push_back({0, kind.batch_most(), static_cast<uint32_t>(std::max(1.0, std::ceil(needed)))});
  }
  return configuration;
}

TuningPlan plan_of(const PipelineInfo& info, double rate) {
  const PlannedPipeline pipeline = planned_pipeline(info);
  Random random(kPlannedSeed);
  std::vector<Duration> arrivals;
  for (Duration at; at < kPlannedLength; at += Duration::from_seconds(random.exponential() / rate)) {
    arrivals.push_back(at);
  }
  TuningPlan plan =
      tuning_plan(pipeline, configuration_of(pipeline, rate), QueryTrace::draw(pipeline, arrivals, kPlannedSeed));
  plan.content = info.content;
  for (size_t i = 0; i < plan.stages.size(); ++i) plan.stages[i].model = info.stages[i].model->name;
  return plan;
}

}  // namespace

std::optional<Targets> TunedPipelines::step(TimePoint now) {
  std::map<std::string, uint32_t> up;
  for (const auto& [id, device] : devices_) {
    if (device.up) ++up[device.kind];
  }
  PipelineTuners::Step step = tuners_.step(up, now);
  FOLIOT_CHECK(step.troubles.empty());
  if (step.targets == targets_) return std::nullopt;
  targets_ = step.targets;
  return Targets{std::move(step.targets)};
}

// A plan stays with its pipeline, whichever versions its models have.
void TunedPipelines::on_pipeline(const PipelineInfo& pipeline) {
  if (!plans_.contains(pipeline.name)) {
    plans_[pipeline.name].plan = plan_of(pipeline, rate_);
    tuners_.set_plans(plans_);
  }
  tuners_.add(TunedPipeline(pipeline));
}

void TunedPipelines::on_run(const Request& /*request*/, const PipelineInfo* pipeline, TimePoint now) {
  if (pipeline != nullptr) tuners_.arrive(pipeline->id, now);
}

void TunedPipelines::on_device(const DeviceChange& change, TimePoint /*now*/) {
  Device& device = devices_[change.device];
  if (change.joined) device.kind = change.kind;
  device.up = change.state == DeviceState::kUp;
}

}  // namespace foliot
