#include "planning/pipelines/configuration.h"

#include <algorithm>
#include <limits>

namespace foliot {

const StageKind& kind_of(const PlannedStage& stage, const StageConfiguration& configuration) {
  return stage.kinds[configuration.kind];
}

double cost(const PlannedStage& stage, const StageConfiguration& configuration) {
  return kind_of(stage, configuration).price * configuration.replicas;
}

double cost(const PlannedPipeline& pipeline, const Configuration& configuration) {
  double sum = 0;
  for (size_t i = 0; i < pipeline.stages.size(); ++i) sum += cost(pipeline.stages[i], configuration.stages[i]);
  return sum;
}

double throughput(const PlannedStage& stage, const StageConfiguration& configuration) {
  if (stage.scale_factor <= 0) return std::numeric_limits<double>::infinity();
  return configuration.replicas * kind_of(stage, configuration).throughput(configuration.batch) / stage.scale_factor;
}

Duration service_time(const PlannedPipeline& pipeline, const Configuration& configuration) {
  std::vector<Duration> done;
  Duration longest;
  for (size_t i = 0; i < pipeline.stages.size(); ++i) {
    Duration ready;
    for (const uint32_t parent : pipeline.stages[i].parents) ready = std::max(ready, done[parent]);
    const StageKind& kind = kind_of(pipeline.stages[i], configuration.stages[i]);
    done.push_back(ready + Duration::nanoseconds(kind.durations_ns[1]));
    longest = std::max(longest, done.back());
  }
  return longest;
}

ModelTarget target(const PlannedStage& stage, const StageConfiguration& configuration) {
  return {.copies_least = configuration.replicas,
          .copies_most = configuration.replicas,
          .kinds = {kind_of(stage, configuration).kind},
          .batch_most = configuration.batch};
}

}  // namespace foliot
