#include "serving/model_startup.h"

#include <fmt/format.h>

namespace foliot {

void ModelStartup::find(const std::vector<ModelFolder>& folders) {
  progress_ = {.total = folders.size()};
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
  for (const ModelFolder& folder : uncompiled_) bytes.push_back(model_files_bytes(folder.model));
  return bytes;
}

void ModelStartup::serve_compiled(ModelHost& host) {
  for (const CompiledModel& model : std::exchange(compiled_, {})) {
    if (parts_.cancelled()) return;
    serve(model, host);
  }
}

void ModelStartup::serve_others(ModelHost& host) {
  for (const ModelFolder& folder : std::exchange(uncompiled_, {})) {
    const std::optional<CompiledModel> model = compile(folder);
    if (parts_.cancelled()) return;
    if (model) serve(*model, host);
  }
}

void ModelStartup::compile_others() {
  for (const ModelFolder& folder : std::exchange(uncompiled_, {})) {
    std::optional<CompiledModel> model = compile(folder);
    if (parts_.cancelled()) return;
    if (model) compiled_.push_back(*std::move(model));
  }
}

std::optional<CompiledModel> ModelStartup::compile(const ModelFolder& folder) {
  const CompileWatch watch{
      [&](std::string_view step, double share) { parts_.reporter.on_compiling(folder.name, step, share); },
      parts_.cancelled};
  Result<Package> package = parts_.packages.get(folder.model, folder.config.compile, watch);
  if (package.ok()) return CompiledModel{folder, *std::move(package)};
  if (!parts_.cancelled()) fail(folder, package.status());
  return std::nullopt;
}

void ModelStartup::serve(const CompiledModel& model, ModelHost& host) {
  const Status status = host.add(model.folder, model.package);
  if (!status.ok()) return fail(model.folder, status);
  for (const std::string& note : model.package.program->notes)
    parts_.reporter.on_note(fmt::format("model '{}': {}", model.folder.name, note));
  ++progress_.served;
  parts_.reporter.on_model(model.folder.name, status);
  parts_.reporter.on_progress(progress_);
}

void ModelStartup::fail(const ModelFolder& folder, const Status& status) {
  parts_.catalog.put({folder.name, folder.version, ModelState::kUnavailable, status.message(), nullptr});
  ++progress_.broken;
  parts_.reporter.on_model(folder.name, status);
  parts_.reporter.on_progress(progress_);
}

}  // namespace foliot
