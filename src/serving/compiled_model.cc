#include "serving/compiled_model.h"

#include <fmt/format.h>

#include <utility>

#include "base/units.h"

namespace foliot {

ModelInfo CompiledModel::info(ModelId id, uint64_t page_bytes) const {
  const Program& program = *package.program;
  ModelInfo info;
  info.id = id;
  info.name = folder.name;
  info.version = folder.version;
  info.content = package.content;
  info.batch_sizes = program.batch_sizes;
  info.batching = program.batching;
  info.inputs = program.inputs;
  info.outputs = program.outputs;
  info.buckets = program.buckets;
  info.pages = program.pages(page_bytes);
  info.seed_load = program.seed_load;
  info.default_slo = folder.config.default_slo;
  info.weight = folder.config.weight;
  return info;
}

Status check_fits(const ModelInfo& model, uint64_t page_bytes, uint32_t page_count) {
  if (model.pages <= page_count) return Status();
  return Status::resource_exhausted(
      fmt::format("its weights need {}, more than the page cache of {}; raise --page-cache",
                  format_bytes(model.pages * page_bytes), format_bytes(page_count * page_bytes)));
}

Status too_many_models(uint32_t models_max) {
  return Status::resource_exhausted(fmt::format("there are {} models already; raise --models-max", models_max));
}

}  // namespace foliot
