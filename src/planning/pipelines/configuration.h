// Configuration: kind of device, batch size and number of replicas of each stage of a pipeline.
#ifndef FOLIOT_PLANNING_PIPELINES_CONFIGURATION_H_
#define FOLIOT_PLANNING_PIPELINES_CONFIGURATION_H_

#include <cstdint>
#include <vector>

#include "foundation/base/time.h"
#include "foundation/core/model_target.h"
#include "planning/pipelines/planned_pipeline.h"

namespace foliot {

struct StageConfiguration {
  uint32_t kind = 0;   // position in PlannedStage::kinds
  uint32_t batch = 1;  // rows of the largest batch
  uint32_t replicas = 1;

  bool operator==(const StageConfiguration&) const = default;
};

struct Configuration {
  std::vector<StageConfiguration> stages;  // by PlannedPipeline::stages

  bool operator==(const Configuration&) const = default;
};

const StageKind& kind_of(const PlannedStage& stage, const StageConfiguration& configuration);

// Dollars per hour.
double cost(const PlannedStage& stage, const StageConfiguration& configuration);
double cost(const PlannedPipeline& pipeline, const Configuration& configuration);

// Queries of the pipeline per second that the stage can take, in full batches. Infinity for a
// stage that no query visits.
double throughput(const PlannedStage& stage, const StageConfiguration& configuration);

// Of one query alone that visits all stages: the longest path.
Duration service_time(const PlannedPipeline& pipeline, const Configuration& configuration);

// What the controller is to hold to, for the stage's model.
ModelTarget target(const PlannedStage& stage, const StageConfiguration& configuration);

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_CONFIGURATION_H_
