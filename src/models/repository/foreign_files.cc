#include "models/repository/foreign_files.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>
#include <system_error>

#include "foundation/config/code_file.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

struct UnreadSettings {
  std::string_view file;
  std::string_view reader;
};

// Of two files that are read, the first is.
constexpr std::array<UnreadSettings, 2> kSettings{{{"model-settings.json", "MLServer"}, {"MLmodel", "MLflow"}}};

constexpr std::array<std::string_view, 4> kModels{"model.pt", "model.pth", "model.plan", "saved_model.pb"};

bool has_file(const fs::path& folder, std::string_view file) {
  std::error_code error;
  return fs::is_regular_file(folder / file, error);
}

// `key` of model.toml, if it differs from what the other file says.
template <typename T, typename U>
void note_if_overruled(const std::optional<Said<T>>& said, const U& value, std::string_view key, ModelFolder& model) {
  if (!said || value == said->value) return;
  model.foreign.notes.push_back(fmt::format("{} is not heeded: model.toml sets {}", said->where, key));
}

}  // namespace

void apply_foreign_settings(const ForeignSettings& settings, ModelConfig& defaults) {
  if (settings.name) defaults.name = settings.name->value;
  if (settings.default_slo) defaults.default_slo = settings.default_slo->value;
  if (settings.batch_delay) defaults.batch_delay = settings.batch_delay->value;
  if (settings.batch_sizes) defaults.compile.batch_sizes = settings.batch_sizes->value;
  if (settings.cache) defaults.cache = settings.cache->value;
  if (settings.versions) defaults.versions.choice = settings.versions->value;
  defaults.compile.declared = settings.tensors;
}

void reconcile_foreign_settings(ModelFolder& model) {
  const ForeignSettings& said = model.foreign;
  ModelConfig& config = model.config;
  note_if_overruled(said.name, config.name, "name", model);
  note_if_overruled(said.default_slo, config.default_slo, "default_slo", model);
  note_if_overruled(said.batch_delay, config.batch_delay, "batch_delay", model);
  note_if_overruled(said.cache, config.cache, "cache", model);
  note_if_overruled(said.versions, config.versions.choice, "versions", model);
  if (!model.is_container()) {
    note_if_overruled(said.batch_sizes, config.compile.batch_sizes, "batch_sizes", model);
    return;
  }
  if (!said.tensors.empty()) {
    const fs::path file = model.model.filename();
    model.foreign.notes.push_back(fmt::format("{}: inputs and outputs are those that {}", said.tensors.front().where,
                                              file == kCodeFile || file == kMlflowFile
                                                  ? fmt::format("{} describes", file.string())
                                                  : "the file has; they are named so"));
  }
  if (!said.batch_sizes) return;
  const uint32_t largest = said.batch_sizes->value.back();
  if (!config.container) config.container.emplace();
  if (!config.container->batch_size_max) config.container->batch_size_max = largest;
  note_if_overruled(std::optional(Said<uint32_t>{largest, said.batch_sizes->where}), *config.container->batch_size_max,
                    "batch_size_max", model);
}

std::vector<std::string> notes_of_foreign_settings(const ModelFolder& model) {
  std::vector<std::string> notes = model.foreign.notes;
  if (!model.config.compile.owns_folder) return notes;
  for (const auto& [file, reader] : kSettings) {
    if (file == model.foreign.file || file == model.model.filename() || !has_file(model.folder, file)) continue;
    notes.push_back(
        fmt::format("{} is a file of {}'s and is not read; batch sizes, delays, deadlines and the name stand in "
                    "model.toml",
                    file, reader));
  }
  return notes;
}

std::string hint_of_foreign_model(const fs::path& folder) {
  for (const std::string_view file : kModels) {
    if (!has_file(folder, file)) continue;
    return fmt::format("; {} is there: export it to ONNX, or serve it by a model.py that loads it (docs/CONTAINERS.md)",
                       file);
  }
  return {};
}

}  // namespace foliot
