#include "node/repository/model_startup.h"

#include <fmt/format.h>

#include "models/repository/foreign_files.h"

namespace foliot {
namespace {

constexpr Duration kCancelInterval = Duration::milliseconds(100);

}  // namespace

void ModelStartup::find(const std::vector<ModelFolder>& folders) {
  {
    const MutexLock lock(mutex_);
    progress_ = {.total = folders.size()};
  }
  std::vector<CatalogEntry> entries;
  entries.reserve(folders.size());
  for (const ModelFolder& folder : folders) {
    entries.push_back({folder.name, folder.version, ModelState::kLoading, {}, nullptr});
  }
  parts_.catalog.put_all(std::move(entries));
  for (const ModelFolder& folder : folders) {
    if (parts_.cancelled()) return;
    if (!folder.status.ok()) {
      fail(folder, folder.status);
      continue;
    }
    if (folder.is_container()) {
      uncompiled_.push_back(folder);
      continue;
    }
    Result<std::optional<Package>> package = parts_.packages.find(folder.model, folder.config.compile);
    if (!package.ok()) {
      fail(folder, package.status());
    } else if (package->has_value()) {
      compiled_.push_back({folder, **std::move(package)});
    } else {
      uncompiled_.push_back(folder);
    }
  }
}

std::vector<uint64_t> ModelStartup::uncompiled_bytes() const {
  std::vector<uint64_t> bytes;
  for (const ModelFolder& folder : uncompiled_) {
    if (folder.is_convertible() || !folder.is_container()) bytes.push_back(model_files_bytes(folder));
  }
  return bytes;
}

void ModelStartup::serve_compiled(ModelHost& host) {
  for (const CompiledModel& model : std::exchange(compiled_, {})) {
    if (parts_.cancelled()) return;
    serve(model, host);
  }
}

void ModelStartup::load_others(RepositoryService& repository) {
  if (uncompiled_.empty()) return;
  for (const ModelFolder& folder : uncompiled_) {
    if (folder.is_container()) parts_.reporter.on_starting(folder.name);
  }
  repository.load_all(uncompiled_,
                      {.progress =
                           [this](const std::string& name, std::string_view step, double share) {
                             const MutexLock lock(mutex_);
                             parts_.reporter.on_compiling(name, step, share);
                           },
                       .done = [this](const std::string& name, const Status& status) { on_loaded(name, status); }});
}

void ModelStartup::wait_for_others(RepositoryService& repository) {
  {
    MutexLock lock(mutex_);
    while (!parts_.cancelled() &&
           !loaded_.wait_for(mutex_, kCancelInterval, [this]() REQUIRES(mutex_) { return progress_.complete(); })) {
    }
  }
  if (parts_.cancelled()) repository.stop();
}

void ModelStartup::on_loaded(const std::string& name, const Status& status) {
  if (!status.ok() && parts_.cancelled()) return;
  const MutexLock lock(mutex_);
  ++(status.ok() ? progress_.served : progress_.broken);
  parts_.reporter.on_model(name, status);
  parts_.reporter.on_progress(progress_);
  loaded_.notify_all();
}

void ModelStartup::serve(const CompiledModel& model, ModelHost& host) {
  const Status status = host.add(model.folder, model.package);
  if (!status.ok()) return fail(model.folder, status);
  for (const auto& notes : {model.package.program->notes, notes_of_foreign_settings(model.folder)})
    for (const std::string& note : notes)
      parts_.reporter.on_note(fmt::format("model '{}': {}", model.folder.name, note));
  on_loaded(model.folder.name, status);
}

void ModelStartup::fail(const ModelFolder& folder, const Status& status) {
  parts_.catalog.put({folder.name, folder.version, ModelState::kUnavailable, status.message(), nullptr});
  on_loaded(folder.name, status);
}

StartupProgress ModelStartup::progress() {
  const MutexLock lock(mutex_);
  return progress_;
}

}  // namespace foliot
