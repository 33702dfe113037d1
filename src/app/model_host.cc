#include "app/model_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "base/units.h"

namespace foliot {
namespace {

std::shared_ptr<const ModelInfo> make_info(const ModelFolder& folder, const Program& program, ModelId id,
                                           uint64_t page_bytes) {
  auto info = std::make_shared<ModelInfo>();
  info->id = id;
  info->name = folder.name;
  info->version = folder.version;
  info->batch_sizes = program.batch_sizes;
  info->batching = program.batching;
  info->inputs = program.inputs;
  info->outputs = program.outputs;
  info->buckets = program.buckets;
  info->pages = program.pages(page_bytes);
  info->seed_load = program.seed_load;
  info->default_slo = folder.config.default_slo;
  info->weight = folder.config.weight;
  return info;
}

}  // namespace

ModelHost::ModelHost(const Parts& parts, uint64_t page_bytes, uint32_t page_count, uint32_t models_max)
    : parts_(parts), page_bytes_(page_bytes), page_count_(page_count), models_max_(models_max) {}

Status ModelHost::add(const ModelFolder& folder, const Package& package) {
  FOLIOT_ASSIGN_OR_RETURN(const ModelId id, free_id());
  Result<Served> started = start(folder, package, id);
  if (!started.ok()) {
    retired_.push_back({id, {}});
    return started.status().with_context(fmt::format("model '{}'", folder.name));
  }
  const auto earlier = served_.find(folder.name);
  if (earlier != served_.end()) retire(earlier->second);
  served_[folder.name] = *started;
  return Status();
}

Result<ModelId> ModelHost::free_id() {
  const auto free = std::find_if(retired_.begin(), retired_.end(), [](const Served& s) { return s.info.expired(); });
  if (free != retired_.end()) {
    const ModelId id = free->id;
    retired_.erase(free);
    return id;
  }
  if (next_id_ == models_max_) {
    return Status::resource_exhausted(fmt::format("there are {} models already; raise --models-max", models_max_));
  }
  return ModelId(next_id_++);
}

Result<ModelHost::Served> ModelHost::start(const ModelFolder& folder, const Package& package, ModelId id) {
  const auto info = make_info(folder, *package.program, id, page_bytes_);
  if (info->pages > page_count_) {
    return Status::resource_exhausted(
        fmt::format("its weights need {}, more than the page cache of {}; raise --page-cache",
                    format_bytes(info->pages * page_bytes_), format_bytes(page_count_ * page_bytes_)));
  }
  FOLIOT_RETURN_IF_ERROR(parts_.engine.add_model(id, package));
  parts_.worker.add_model(worker_model(id, *package.program, page_bytes_));
  parts_.controller.add_model(info);
  parts_.catalog.put({folder.name, folder.version, ModelState::kReady, {}, info});
  return Served{id, info};
}

Status ModelHost::remove(const std::string& name) {
  const auto found = served_.find(name);
  if (found == served_.end()) return Status::not_found(fmt::format("there is no model '{}'", name));
  const auto entries = parts_.catalog.snapshot();
  parts_.catalog.put({name, entries->at(name).version, ModelState::kUnavailable, "unloaded", nullptr});
  const Served served = found->second;
  served_.erase(found);
  retire(served);
  return Status();
}

void ModelHost::retire(Served served) {
  std::promise<void> gone;
  parts_.controller.remove_model(served.id, [&gone] { gone.set_value(); });
  gone.get_future().wait();
  parts_.worker.remove_model(served.id);
  parts_.engine.remove_model(served.id);
  retired_.push_back(std::move(served));
}

}  // namespace foliot
