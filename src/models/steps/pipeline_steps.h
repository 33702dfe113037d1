// The models of all steps of a pipeline.
#ifndef FOLIOT_MODELS_STEPS_PIPELINE_STEPS_H_
#define FOLIOT_MODELS_STEPS_PIPELINE_STEPS_H_

#include <string>
#include <vector>

#include "answer/pipelines/pipeline_spec.h"
#include "foundation/base/status.h"
#include "models/steps/step_model.h"

namespace foliot {

struct PipelineStep {
  std::string name;  // of the model: PIPELINE.STAGE
  // Errors: kInvalidArgument naming file, line, step and option.
  Result<StepModel> model;
};

// In the order of the stages. What a step makes, those that take it need not repeat.
std::vector<PipelineStep> steps_of(const PipelineSpec& spec);

}  // namespace foliot

#endif  // FOLIOT_MODELS_STEPS_PIPELINE_STEPS_H_
