// CompiledModel: a model of a repository, ready to be preloaded.
#ifndef FOLIOT_APP_COMPILED_MODEL_H_
#define FOLIOT_APP_COMPILED_MODEL_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "app/commands/startup_reporter.h"
#include "core/model_info.h"
#include "program/package.h"
#include "repository/model_folder.h"
#include "repository/package_store.h"

namespace foliot {

struct CompiledModel {
  ModelFolder folder;
  Package package;

  // All that the controller and the front end need to know of it.
  ModelInfo info(ModelId id, uint64_t page_bytes) const;
};

// Errors: kResourceExhausted if the model's weights need more than the page cache.
Status check_fits(const ModelInfo& model, uint64_t page_bytes, uint32_t page_count);

// One more than `models_max`. kResourceExhausted.
Status too_many_models(uint32_t models_max);

// All of these models, compiled now where they have not been before; broken ones are
// passed to `on_broken` and left out. Ends early, with fewer, once `cancelled`.
std::vector<CompiledModel> compile_all(const std::vector<ModelFolder>& folders, PackageStore& packages,
                                       StartupReporter& reporter, const std::function<bool()>& cancelled,
                                       const std::function<void(const ModelFolder&, const Status&)>& on_broken);

}  // namespace foliot

#endif  // FOLIOT_APP_COMPILED_MODEL_H_
