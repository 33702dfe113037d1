#include "node/repository/model_host.h"

#include <fmt/format.h>

#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

bool is_configured(const ModelInfo& info, const ModelFolder& folder) {
  return info.version == folder.version && info.default_slo == folder.config.default_slo &&
         info.weight == folder.config.weight && info.batch_delay == folder.config.batch_delay &&
         info.cache == folder.config.cache;
}

}  // namespace

ModelHost::ModelHost(const Parts& parts, uint64_t page_bytes, uint32_t page_count, uint32_t models_max)
    : parts_(parts), page_bytes_(page_bytes), page_count_(page_count), models_max_(models_max) {}

Status ModelHost::add(const ModelFolder& folder, const Package& package,
                      const std::optional<std::vector<std::string>>& columns) {
  if (serves(folder, package)) return Status();
  FOLIOT_ASSIGN_OR_RETURN(const ModelId id, take_id());
  return start({folder, package, columns}, id).with_context(fmt::format("model '{}'", folder.name));
}

bool ModelHost::serves(const ModelFolder& folder, const Package& package) {
  MutexLock lock(mutex_);
  const auto found = served_.find(folder.name);
  if (found == served_.end() || found->second.program.lock() != package.program) return false;
  const auto info = found->second.lease.lock();
  return info != nullptr && is_configured(*info, folder);
}

bool ModelHost::serves(const ModelFolder& folder, const std::string& content) {
  MutexLock lock(mutex_);
  const auto found = served_.find(folder.name);
  if (found == served_.end() || found->second.container == nullptr) return false;
  const auto info = found->second.lease.lock();
  return info != nullptr && info->content == content && is_configured(*info, folder);
}

Result<std::unique_ptr<ContainerModel>> ModelHost::start_container(const ModelFolder& folder,
                                                                   const std::function<bool()>& cancelled) {
  if (parts_.containers == nullptr) {
    return Status::unimplemented(fmt::format("model '{}' is a container, and none are served here", folder.name));
  }
  FOLIOT_ASSIGN_OR_RETURN(const std::string content, container_content(folder));
  if (serves(folder, content)) return std::unique_ptr<ContainerModel>();
  Result<std::unique_ptr<ContainerModel>> started = ContainerModel::start(folder, *parts_.containers, cancelled);
  if (started.ok()) return started;
  return started.status().with_context(fmt::format("model '{}'", folder.name));
}

Status ModelHost::add(std::unique_ptr<ContainerModel> container) {
  FOLIOT_ASSIGN_OR_RETURN(const ModelId id, take_id());
  const auto info = std::make_shared<const ModelInfo>(container->info(id));
  ModelSink& planner = parts_.containers->replicas.place.planner();
  if (const Status status = planner.check(*info); !status.ok()) {
    give_back(id);
    return status;
  }
  planner.add_model(info);
  if (const Status status = container->serve(info); !status.ok()) {
    const MutexLock lock(mutex_);
    leave({.id = id, .lease = {}, .container = std::move(container)}, {});
    return status.with_context(fmt::format("model '{}'", info->name));
  }
  const Lease shown = lease(info);
  show(shown, {.id = id, .lease = shown, .container = std::move(container)});
  return Status();
}

Result<ModelId> ModelHost::take_id() {
  MutexLock lock(mutex_);
  if (!free_ids_.empty()) {
    const ModelId id = free_ids_.back();
    free_ids_.pop_back();
    return id;
  }
  if (next_id_ == models_max_) {
    return too_many_models(models_max_);
  }
  return ModelId(next_id_++);
}

void ModelHost::give_back(ModelId id) {
  MutexLock lock(mutex_);
  free_ids_.push_back(id);
}

bool ModelHost::has(const std::string& name) {
  MutexLock lock(mutex_);
  return served_.contains(name);
}

Status ModelHost::start(const CompiledModel& model, ModelId id) {
  const auto info = std::make_shared<const ModelInfo>(model.info(id, page_bytes_, parts_.kind));
  const size_t all = info->only().batch_sizes.size();
  const size_t needed = has(info->name) || !parts_.planner.takes_parts() ? all : 1;
  Result<std::vector<WorkerModel>> added = add(EngineModel{info, model.package}, needed);
  if (!added.ok()) {
    for (const Device& device : parts_.devices) device.engine.remove(id);
    give_back(id);
    return added.status();
  }
  serve({info, model.package}, model.folder, std::move(added).value(), needed);
  for (size_t next = needed; next < all; ++next) {
    if (Status status = prepare(id, next); !status.ok()) {
      const Status removed = remove(info->name, {});
      FOLIOT_CHECK(removed.ok());
      return status;
    }
    parts_.planner.extend_model(std::make_shared<const ModelInfo>(with_batch_sizes(*info, next + 1)));
  }
  return Status();
}

Result<std::vector<WorkerModel>> ModelHost::add(const EngineModel& model, size_t ready) {
  const ModelInfo& info = *model.info;
  FOLIOT_RETURN_IF_ERROR(check_fits(info, page_bytes_, page_count_));
  FOLIOT_RETURN_IF_ERROR(parts_.planner.check(info));
  std::vector<WorkerModel> added;
  for (const Device& device : parts_.devices) {
    if (device.make_room) FOLIOT_RETURN_IF_ERROR(device.make_room(*model.package.program));
    FOLIOT_ASSIGN_OR_RETURN(WorkerModel table, device.engine.add(model));
    added.push_back(std::move(table));
  }
  for (size_t i = 0; i < ready; ++i) FOLIOT_RETURN_IF_ERROR(prepare(info.id, i));
  return added;
}

Status ModelHost::prepare(ModelId id, size_t batch_index) {
  for (const Device& device : parts_.devices) FOLIOT_RETURN_IF_ERROR(device.engine.prepare(id, batch_index));
  return Status();
}

void ModelHost::serve(const EngineModel& model, const ModelFolder& folder, std::vector<WorkerModel> added,
                      size_t ready) {
  const std::shared_ptr<const ModelInfo>& info = model.info;
  for (size_t i = 0; i < added.size(); ++i) parts_.devices[i].worker.add_model(std::move(added[i]));
  parts_.planner.add_model(std::make_shared<const ModelInfo>(with_batch_sizes(*info, ready)));
  if (parts_.on_served) parts_.on_served(*info);
  const Lease shown = lease(info);
  const std::shared_ptr<PackageFile>& file = model.package.file;
  show(shown, {.id = info->id,
               .lease = shown,
               .program = model.package.program,
               .file = file,
               .folder = std::make_shared<const ModelFolder>(folder)});
  if (file == nullptr) return;
  file->watch(info->name, [name = info->name, progress = progress_] { progress->found_damage(name); });
}

std::optional<ModelFolder> ModelHost::withdraw_damaged(const std::string& name) {
  const MutexLock lock(mutex_);
  const auto found = served_.find(name);
  if (found == served_.end() || found->second.file == nullptr) return std::nullopt;
  const Status damage = found->second.file->check();
  if (damage.ok()) return std::nullopt;
  ModelFolder folder = *found->second.folder;
  parts_.catalog.put(
      {name, folder.version, ModelState::kLoading, fmt::format("{}; it is compiled again", damage.message()), nullptr});
  leave(std::move(found->second), {});
  served_.erase(found);
  return folder;
}

ModelHost::Lease ModelHost::lease(const std::shared_ptr<const ModelInfo>& info) const {
  return {info.get(), [info, progress = progress_](const ModelInfo*) { progress->made(); }};
}

void ModelHost::show(const Lease& lease, Served served) {
  parts_.catalog.put({lease->name, lease->version, ModelState::kReady, {}, lease});
  MutexLock lock(mutex_);
  const auto [place, is_new] = served_.try_emplace(lease->name, served);
  if (!is_new) leave(std::exchange(place->second, std::move(served)), {});
}

Status ModelHost::remove(const std::string& name, Gone gone) {
  MutexLock lock(mutex_);
  const auto found = served_.find(name);
  if (found == served_.end()) return Status::not_found(fmt::format("there is no model '{}'", name));
  // Several versions of it may have taken the name.
  if (const Catalog::EntryPtr shown = parts_.catalog.find(name); shown != nullptr && shown->versions == nullptr) {
    parts_.catalog.put({.name = name,
                        .version = shown->version,
                        .state = ModelState::kUnloading,
                        .reason = {},
                        .info = nullptr,
                        .wanted = false});
  }
  leave(found->second, std::move(gone));
  served_.erase(found);
  return Status();
}

void ModelHost::leave(Served served, Gone gone) {
  Leaving& leaving = leaving_.emplace_back();
  leaving.served = std::move(served);
  leaving.gone = std::move(gone);
}

bool ModelHost::left(Leaving& leaving) {
  if (!leaving.served.lease.expired()) return false;
  if (!std::exchange(leaving.asked, true)) {
    planner_of(leaving.served).remove_model(leaving.served.id, [&leaving, progress = progress_] {
      leaving.forgotten = true;
      progress->made();
    });
  }
  return leaving.forgotten;
}

bool ModelHost::sweep() {
  std::list<Leaving> gone;
  bool more = false;
  {
    MutexLock lock(mutex_);
    for (auto next = leaving_.begin(); next != leaving_.end();) {
      const auto leaving = next++;
      if (left(*leaving)) gone.splice(gone.end(), leaving_, leaving);
    }
    more = !leaving_.empty();
  }
  for (const Leaving& leaving : gone) {
    end(leaving.served);
    if (leaving.gone) leaving.gone(Status());
  }
  MutexLock lock(mutex_);
  for (const Leaving& leaving : gone) free_ids_.push_back(leaving.served.id);
  return more;
}

ModelSink& ModelHost::planner_of(const Served& served) const {
  return served.container == nullptr ? parts_.planner : parts_.containers->replicas.place.planner();
}

void ModelHost::end(const Served& served) {
  if (served.container != nullptr) return served.container->stop();
  for (const Device& device : parts_.devices) {
    device.worker.remove_model(served.id);
    device.engine.remove(served.id);
  }
}

void ModelHost::stop_containers() {
  std::vector<std::shared_ptr<ContainerModel>> containers;
  {
    const MutexLock lock(mutex_);
    for (const auto& [name, served] : served_) containers.push_back(served.container);
    for (const Leaving& leaving : leaving_) containers.push_back(leaving.served.container);
  }
  for (const auto& container : containers) {
    if (container != nullptr) container->stop();
  }
}

void ModelHost::set_on_progress(std::function<void()> on_progress) {
  MutexLock lock(progress_->mutex);
  progress_->notify = std::move(on_progress);
}

void ModelHost::Progress::made() {
  MutexLock lock(mutex);
  if (notify) notify();
}

void ModelHost::set_on_damage(std::function<void(const std::string& model)> on_damage) {
  MutexLock lock(progress_->mutex);
  progress_->on_damage = std::move(on_damage);
}

void ModelHost::Progress::found_damage(const std::string& model) {
  MutexLock lock(mutex);
  if (on_damage) on_damage(model);
}

void ModelHost::abandon() {
  MutexLock lock(mutex_);
  for (Leaving& leaving : leaving_) {
    if (Gone gone = std::exchange(leaving.gone, {})) gone(Status::unavailable("the server is shutting down"));
  }
}

}  // namespace foliot
