// RepositoryPath: what the path of a repository leads to.
//
// A repository is a folder with a folder for each model, pipeline, task, application or personal
// model. Where the path leads to one model alone, that is the repository: a .onnx file, a model.py, or
// a folder with a model.onnx or model.py in it, with the settings of another server for one model, or with one .onnx
// file and no folder.
//
// Rejected: every .onnx file of a folder as a model of its own. It is not known which of the other files
// belong to which, and the process that compiles one could read all.
#ifndef FOLIOT_FOUNDATION_CONFIG_REPOSITORY_PATH_H_
#define FOLIOT_FOUNDATION_CONFIG_REPOSITORY_PATH_H_

#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"

namespace foliot {

// Files of Triton's and MLServer's that describe the model of the folder that they lie in. Of two the first is read.
inline constexpr std::array<std::string_view, 2> kForeignSettingsFiles{"config.pbtxt", "model-settings.json"};

// The .onnx file, model.py, or settings of the one model; nullopt: the path is a folder of models. Errors, which name
// the path and what to do: kNotFound if nothing is there; kInvalidArgument for a file of another
// kind, several models, or what cannot be read. Any thread.
Result<std::optional<std::filesystem::path>> find_lone_model(const std::filesystem::path& repository);

// As list_folder(); nothing where the path is one model. Errors: of find_lone_model(), and kInternal. Any thread.
Result<std::vector<std::filesystem::path>> list_repository(const std::filesystem::path& repository);

// The folder of what is kept of a repository and is hidden in it, such as .foliot: the path, or of a
// file the folder that it lies in.
std::filesystem::path repository_folder(const std::filesystem::path& repository);

// Where compiled models are kept: `cache`, or if that is empty, .foliot in the repository's folder.
std::filesystem::path cache_folder(const std::filesystem::path& repository, const std::filesystem::path& cache);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CONFIG_REPOSITORY_PATH_H_
