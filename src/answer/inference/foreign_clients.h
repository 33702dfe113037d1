// Clients of MLServer and KServe: what a container that has the names of their servers' tensors does for them. A file
// of a framework is served under these names (docs/FOLDERS.md), compiled or not; a model.py may have them, too.
//
// Threading: pure functions.
#ifndef FOLIOT_ANSWER_INFERENCE_FOREIGN_CLIENTS_H_
#define FOLIOT_ANSWER_INFERENCE_FOREIGN_CLIENTS_H_

#include <algorithm>
#include <array>
#include <string_view>

#include "foundation/core/model_info.h"
#include "foundation/core/tensor.h"

namespace foliot {

// Names an input that the settings of those servers do not name.
inline constexpr std::string_view kUnnamedInput = "input-0";
// Is MLServer's name of the only result of MLflow's models.
inline constexpr std::string_view kUnnamedOutput = "output-1";
// Lists the methods of scikit-learn by which MLServer names outputs.
inline constexpr std::array<std::string_view, 5> kMethods = {"predict", "predict_proba", "predict_log_proba",
                                                             "decision_function", "transform"};

inline bool is_container(const ModelInfo& model) {
  return std::ranges::any_of(model.runnables,
                             [](const Runnable& runnable) { return runnable.kind.starts_with("container:"); });
}

// Takes what clients of those servers send, as a container does.
inline bool takes_other_forms(const ModelInfo& model) { return model.from_framework || is_container(model); }

inline bool is_method(std::string_view name) { return std::ranges::find(kMethods, name) != kMethods.end(); }

// Returns how many outputs, from the first on, a call gets that names none: of methods one, as with MLServer.
inline size_t default_output_count(const ModelInfo& model) {
  const auto is_named = [](const TensorSpec& output) { return is_method(output.name); };
  return takes_other_forms(model) && std::ranges::all_of(model.outputs, is_named) ? 1 : model.outputs.size();
}

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_FOREIGN_CLIENTS_H_
