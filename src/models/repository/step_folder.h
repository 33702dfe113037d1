// StepFolder: the files of the models that the built-in steps of a pipeline are
// (models/steps/step_model.h), so that they are compiled, kept and served as every model.
//
//   STEPS/PIPELINE.STAGE.HASH/model.onnx, model.toml
//
// HASH is that of the content: a folder never changes, and a step with other options has
// another. Old ones may be deleted at any time.
#ifndef FOLIOT_MODELS_REPOSITORY_STEP_FOLDER_H_
#define FOLIOT_MODELS_REPOSITORY_STEP_FOLDER_H_

#include <filesystem>
#include <vector>

#include "answer/pipelines/pipeline_spec.h"
#include "models/repository/model_folder.h"

namespace foliot {

// Writes what is not there yet. A step that is wrong, or whose files cannot be written, has
// that as its status. Of a pipeline that cannot be served: none.
std::vector<ModelFolder> make_step_folders(const PipelineSpec& pipeline, const std::filesystem::path& steps,
                                           const ModelConfig& defaults);

}  // namespace foliot

#endif  // FOLIOT_MODELS_REPOSITORY_STEP_FOLDER_H_
