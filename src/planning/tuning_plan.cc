#include "planning/tuning_plan.h"

#include "base/check.h"

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
                           .throughput = kind.throughput(configuration.batch)});
  }
  return plan;
}

}  // namespace foliot
