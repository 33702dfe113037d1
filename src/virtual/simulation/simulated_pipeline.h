// Simulated pipelines: a pipeline of a workload, as a controller runs it, and what its stages
// "compute": whether conditions hold, and how many elements there are, is drawn for each run and
// stage, so that a visit that is made again ends as it would have ended before.
#ifndef FOLIOT_VIRTUAL_SIMULATION_SIMULATED_PIPELINE_H_
#define FOLIOT_VIRTUAL_SIMULATION_SIMULATED_PIPELINE_H_

#include <cstdint>
#include <memory>
#include <span>

#include "foundation/core/ids.h"
#include "foundation/core/pipeline_info.h"
#include "foundation/core/visit_reading.h"
#include "load/workload/workload.h"

namespace foliot {

// `models`: all of the workload, by their numbers. A stage that some runs skip requires a
// condition of the first stage before it, which holds if a number drawn from [0, 1) is below
// the stage's share. REQUIRES: the workload has been checked.
std::shared_ptr<const PipelineInfo> simulated_pipeline(const Workload& workload, size_t pipeline,
                                                       std::span<const std::shared_ptr<const ModelInfo>> models);

// What is read of the stage in this run. `load`: of which the stage was made.
VisitReading drawn_reading(const PipelineLoad::Stage& load, const PipelineStage& stage, uint32_t position,
                           RequestId run, uint64_t seed);

// The same of a run that was recorded.
VisitReading recorded_reading(const RecordedRun& recorded, const PipelineInfo& pipeline, uint32_t position);

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_SIMULATION_SIMULATED_PIPELINE_H_
