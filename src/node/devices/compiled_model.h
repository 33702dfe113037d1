// CompiledModel: a model of a repository, ready to be preloaded.
#ifndef FOLIOT_NODE_DEVICES_COMPILED_MODEL_H_
#define FOLIOT_NODE_DEVICES_COMPILED_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/program/package.h"
#include "foundation/core/model_info.h"
#include "models/repository/model_folder.h"

namespace foliot {

struct CompiledModel {
  ModelFolder folder;
  Package package;
  // The names of its input's columns, which may be none, if it was made from the file of a framework; else nullopt.
  std::optional<std::vector<std::string>> columns{};

  // Its ModelInfo, for the controller and the front end.
  // On a device of this kind.
  ModelInfo info(ModelId id, uint64_t page_bytes, const std::string& kind) const;
};

// Errors: kResourceExhausted if the model's weights need more than the page cache.
Status check_fits(const ModelInfo& model, uint64_t page_bytes, uint32_t page_count);

// One more than `models_max`. kResourceExhausted.
Status too_many_models(uint32_t models_max);

}  // namespace foliot

#endif  // FOLIOT_NODE_DEVICES_COMPILED_MODEL_H_
