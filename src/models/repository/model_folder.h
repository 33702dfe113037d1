// ModelFolder: one model of a repository on disk.
//
// A repository is one model alone (foundation/config/repository_path.h), named after the file or folder that
// the path leads to, or a folder with a folder per model, in either form:
//   NAME/model.onnx                    version 1
//   NAME/VERSION/model.onnx            VERSION a whole number; the highest is served, unless model.toml says otherwise
// with a model.py in place of model.onnx where it is a container (engine/container/container_process.h),
// and optionally NAME/model.toml, and a file of another server's (models/foreign/foreign_settings.h), over which
// model.toml goes. Folders that begin with '.' are skipped, and those with an
// application.toml, which are applications (answer/selection/application.h), a personal.toml
// (answer/personal/service/personal_file.h) or a task.toml (answer/tasks/task_file.h). What a model is made of
// lies in the repository, wherever links lead.
//
// Where model.toml says that several versions are served, or labels them, each is a ModelFolder of its own, named by
// versioned_name() (foundation/core/version_table.h).
//
// A folder with a pipeline.toml is a pipeline (answer/pipelines/pipeline_file.h). Each of its built-in
// steps is a model, too, named PIPELINE.STAGE, whose files are made here (models/repository/step_folder.h).
#ifndef FOLIOT_MODELS_REPOSITORY_MODEL_FOLDER_H_
#define FOLIOT_MODELS_REPOSITORY_MODEL_FOLDER_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "models/foreign/foreign_settings.h"
#include "models/repository/model_config.h"

namespace foliot {

struct ModelFolder {
  std::string name;
  std::string version = "1";
  std::filesystem::path folder;
  std::filesystem::path model;  // the .onnx file, or is_code_file()
  ModelConfig config;
  VersionRules rules{};       // among the versions of its name; those of all are the same
  std::string pipeline{};     // whose step it is; empty: of none
  ForeignSettings foreign{};  // of which `config` has what model.toml does not say otherwise
  Status status;              // not ok: why this model cannot be served

  // It is code that runs in processes of its own, not a graph that is compiled.
  bool is_container() const;
  // Such code is only the file of a framework, or MLflow's folder, of a size that conversion takes, and may be compiled
  // (node/repository/converted_models.h).
  bool is_convertible() const;
  // It is one of the versions of a model, of which there may be several.
  bool is_version() const { return client_name(name).size() < name.size(); }
};

// Errors: those of find_lone_model().
Status check_repository(const std::filesystem::path& repository);

// All models, by name; broken ones with their status. Two of one name are both
// broken. Errors: those of list_repository(). `patterns`: only models with a name that one of these matches, as file
// names in a shell ("resnet*"); none: all. `cache`: where the models of steps are made; empty: <repository>/.foliot.
Result<std::vector<ModelFolder>> scan_repository(const std::filesystem::path& repository, const ModelConfig& defaults,
                                                 const std::vector<std::string>& patterns = {},
                                                 const std::filesystem::path& cache = {});

// The bytes of its list_model_files(); 0 if they cannot be listed.
uint64_t model_files_bytes(const ModelFolder& folder);

// All files of a model: the .onnx file or model.py first, then everything else in its folder
// and below, but for settings and what begins with '.', by name. Without `owns_folder` only those that
// are named after it (is_named_after()), and no other model. Errors: kNotFound
// if there is no such file; kInvalidArgument if there are too many.
Result<std::vector<std::filesystem::path>> list_model_files(const std::filesystem::path& model,
                                                            bool owns_folder = true);

// Differs whenever a file of the model or of its settings was written, replaced, added
// or removed, as far as sizes and times show.
std::string signature_of(const ModelFolder& folder);

}  // namespace foliot

#endif  // FOLIOT_MODELS_REPOSITORY_MODEL_FOLDER_H_
