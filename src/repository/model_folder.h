// ModelFolder: one model of a repository on disk.
//
// A repository is a folder with a folder per model, in either form:
//   NAME/model.onnx                    version 1
//   NAME/VERSION/model.onnx            VERSION a whole number; the highest is served
// and optionally NAME/model.toml. Folders that begin with '.' are skipped.
#ifndef FOLIOT_REPOSITORY_MODEL_FOLDER_H_
#define FOLIOT_REPOSITORY_MODEL_FOLDER_H_

#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "repository/model_config.h"

namespace foliot {

struct ModelFolder {
  std::string name;
  std::string version = "1";
  std::filesystem::path model;  // the .onnx file
  ModelConfig config;
  Status status;  // not ok: why this model cannot be served
};

// All models, by name; broken ones with their status. Two of one name are both
// broken. Errors: kNotFound if there is no such repository.
Result<std::vector<ModelFolder>> scan_repository(const std::filesystem::path& repository, const ModelConfig& defaults);

}  // namespace foliot

#endif  // FOLIOT_REPOSITORY_MODEL_FOLDER_H_
