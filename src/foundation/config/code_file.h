// Code files: which file of a model's folder is run in a container rather than compiled.
#ifndef FOLIOT_FOUNDATION_CONFIG_CODE_FILE_H_
#define FOLIOT_FOUNDATION_CONFIG_CODE_FILE_H_

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "foundation/base/status.h"

namespace foliot {

inline constexpr std::string_view kCodeFile = "model.py";
// Of MLflow: names the file of the model, which lies beside it; `foliot.adapters.mlflow_model` reads it.
inline constexpr std::string_view kMlflowFile = "MLmodel";

// Files of frameworks, by what their names end with; where there is no model.py, `foliot.adapters.file_model` of the
// Python package loads them.
inline constexpr std::array<std::string_view, 9> kFrameworkSuffixes{".skops", ".joblib", ".pkl", ".pickle", ".json",
                                                                    ".ubj",   ".bst",    ".txt", ".cbm"};

// `file` is model.py, MLmodel, or a model that a framework wrote.
inline bool is_code_file(const std::filesystem::path& file) {
  return file.filename() == kCodeFile || file.filename() == kMlflowFile ||
         std::ranges::find(kFrameworkSuffixes, file.extension().string()) != kFrameworkSuffixes.end();
}

// model.py in this folder, or else `named`, which is a framework's or MLmodel; if that is empty MLmodel, or else
// model.joblib and the like; empty if none is there. Errors: kInvalidArgument if there are files of two frameworks, or
// if they cannot be looked at.
Result<std::filesystem::path> find_code_file(const std::filesystem::path& folder, const std::filesystem::path& named);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CONFIG_CODE_FILE_H_
