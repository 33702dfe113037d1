// ModelConfig: the settings of a model's folder (model.toml).
#ifndef FOLIOT_MODELS_REPOSITORY_MODEL_CONFIG_H_
#define FOLIOT_MODELS_REPOSITORY_MODEL_CONFIG_H_

#include <filesystem>
#include <optional>
#include <string>

#include "engine/compiler/compiler.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "models/repository/container_config.h"
#include "models/repository/version_config.h"

namespace foliot {

// Longer delays are mistakes: clients give up before.
inline constexpr Duration kBatchDelayMax = Duration::seconds(10);

struct ModelConfig {
  std::optional<std::string> name;      // name = "x": instead of the folder's
  std::optional<Duration> default_slo;  // default_slo = "50ms"
  double weight = 1;                    // weight = 2
  // batch_delay = "5ms"; nullopt: "auto", the default of containers
  std::optional<Duration> batch_delay = Duration();
  bool cache = false;                        // cache = true
  VersionConfig versions{};                  // versions, [labels], [split]
  CompileOptions compile;                    // batch_sizes, batch_dimension, precision, [buckets]
  std::optional<ContainerConfig> container;  // [container]; of models that are a model.py
  // The module of MLServer's runtime that reads files of frameworks, where no settings beside them name one; may be
  // empty.
  std::string runtime{};
};

// The model.toml of a model: beside it, or beside the folder of its version.
std::filesystem::path config_file_of(const std::filesystem::path& model);

// `defaults`, changed by the file; `defaults` as they are if there is no such file.
// Errors: kInvalidArgument naming file, line and key.
Result<ModelConfig> read_model_config(const std::filesystem::path& file, const ModelConfig& defaults);

}  // namespace foliot

#endif  // FOLIOT_MODELS_REPOSITORY_MODEL_CONFIG_H_
