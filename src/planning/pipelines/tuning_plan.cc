#include "planning/pipelines/tuning_plan.h"

#include <algorithm>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {

TuningPlan tuning_plan(const PlannedPipeline& pipeline, const Configuration& planned, const QueryTrace& trace) {
  FOLIOT_CHECK(trace.rate() > 0);
  TuningPlan plan{.pipeline = pipeline.name,
                  .rate = trace.rate(),
                  .envelope = traffic_envelope(trace.arrivals_ns, envelope_windows(service_time(pipeline, planned))),
                  .stages = {}};
  for (size_t i = 0; i < pipeline.stages.size(); ++i) {
    const PlannedStage& stage = pipeline.stages[i];
    const StageConfiguration& configuration = planned.stages[i];
    const StageKind& kind = kind_of(stage, configuration);
    plan.stages.push_back({.name = stage.name,
                           .kind = kind.kind,
                           .batch = configuration.batch,
                           .replicas = configuration.replicas,
                           .scale_factor = stage.scale_factor,
                           .throughput = kind.throughput(configuration.batch),
                           .price = kind.price});
    TuningPlan::Stage& saved = plan.stages.back();
    for (const uint32_t size : kind.batch_sizes) {
      saved.batch_sizes.push_back(size);
      saved.durations.push_back(Duration::nanoseconds(kind.durations_ns[size]));
      if (size >= configuration.batch) break;
    }
  }
  return plan;
}

bool TuningPlan::can_estimate() const {
  return goal.slo > Duration() &&
         std::ranges::none_of(stages, [](const Stage& stage) { return stage.batch_sizes.empty(); });
}

PlannedPipeline estimate_pipeline(const TuningPlan& plan, std::span<const StageEdges> edges) {
  FOLIOT_CHECK(plan.can_estimate() && edges.size() == plan.stages.size());
  PlannedPipeline pipeline{plan.pipeline, {}};
  for (size_t i = 0; i < edges.size(); ++i) {
    const TuningPlan::Stage& from = plan.stages[i];
    StageKind kind{from.kind, from.price, from.batch_sizes, {0}};
    for (size_t size = 0; size < from.batch_sizes.size(); ++size) {
      // A batch takes as long as the next batch size that was measured.
      kind.durations_ns.resize(from.batch_sizes[size] + 1, from.durations[size].nanoseconds());
    }
    pipeline.stages.push_back(
        {from.name, edges[i].parents, edges[i].needs, 1, from.scale_factor, {std::move(kind)}, edges[i].counted_by});
  }
  pipeline.set_probabilities();
  return pipeline;
}

Configuration estimate_configuration(const TuningPlan& plan) {
  Configuration configuration;
  for (const TuningPlan::Stage& stage : plan.stages) configuration.stages.push_back({0, stage.batch, stage.replicas});
  return configuration;
}

}  // namespace foliot
