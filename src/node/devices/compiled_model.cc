#include "node/devices/compiled_model.h"

#include <fmt/format.h>

#include <utility>

#include "foundation/base/units.h"

namespace foliot {

ModelInfo CompiledModel::info(ModelId id, uint64_t page_bytes, const std::string& kind) const {
  const Program& program = *package.program;
  ModelInfo info;
  info.id = id;
  info.name = folder.name;
  info.version = folder.version;
  info.content = package.content;
  info.batching = program.batching;
  info.inputs = program.inputs;
  info.outputs = program.outputs;
  info.from_framework = columns.has_value();
  if (columns) info.inputs.front().labels = *columns;
  info.runnables = {{.kind = kind,
                     .batch_sizes = program.batch_sizes,
                     .pages = program.pages(page_bytes),
                     .seed_load = program.seed_load,
                     .operator_ends = program.operator_ends}};
  if (program.operator_ends.size() > kOperatorEndsMax) info.only().operator_ends.clear();
  for (const ProgramBucket& bucket : program.buckets) {
    info.buckets.push_back({bucket.dimensions});
    info.only().seed_exec.push_back(bucket.seed_exec);
  }
  info.default_slo = folder.config.default_slo;
  info.weight = folder.config.weight;
  info.batch_delay = folder.config.batch_delay;
  info.cache = folder.config.cache;
  return info;
}

Status check_fits(const ModelInfo& model, uint64_t page_bytes, uint32_t page_count) {
  const uint32_t pages = model.only().pages;
  if (pages <= page_count) return Status();
  return Status::resource_exhausted(
      fmt::format("its weights need {}, more than the page cache of {}; raise --page-cache",
                  format_bytes(pages * page_bytes), format_bytes(page_count * page_bytes)));
}

Status too_many_models(uint32_t models_max) {
  return Status::resource_exhausted(fmt::format("there are {} models already; raise --models-max", models_max));
}

}  // namespace foliot
