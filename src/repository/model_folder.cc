#include "repository/model_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace foliot {
namespace {

namespace fs = std::filesystem;

std::optional<uint64_t> parse_version(const std::string& text) {
  uint64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size() || text.front() == '0') return std::nullopt;
  return version;
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

Status find_model(const fs::path& folder, ModelFolder& model) {
  std::map<uint64_t, fs::path> versions;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto version = parse_version(entry.path().filename().string());
    if (version && is_file(entry.path() / "model.onnx")) versions[*version] = entry.path() / "model.onnx";
  }
  if (error) return Status::invalid_argument(fmt::format("{}: {}", folder.string(), error.message()));
  const fs::path bare = folder / "model.onnx";
  if (is_file(bare) && !versions.empty()) {
    return Status::invalid_argument(fmt::format("{} and {} are two models of one name; remove one of them",
                                                bare.string(), versions.rbegin()->second.string()));
  }
  if (is_file(bare)) {
    model.model = bare;
  } else if (!versions.empty()) {
    model.version = std::to_string(versions.rbegin()->first);
    model.model = versions.rbegin()->second;
  } else {
    return Status::not_found(
        fmt::format("{}: no model.onnx here or in a version folder such as {}/1", folder.string(), folder.string()));
  }
  return Status();
}

ModelFolder read_folder(const fs::path& folder, const ModelConfig& defaults) {
  ModelFolder model{.name = folder.filename().string(), .model = {}, .config = defaults, .status = {}};
  Result<ModelConfig> config = read_model_config(folder / "model.toml", defaults);
  if (config.ok()) {
    model.config = *config;
    model.name = config->name.value_or(model.name);
  }
  model.status = find_model(folder, model);
  if (!config.ok()) model.status = config.status();
  return model;
}

void mark_duplicates(std::vector<ModelFolder>& models) {
  for (size_t i = 1; i < models.size(); ++i) {
    if (models[i].name != models[i - 1].name) continue;
    const Status status = Status::invalid_argument(fmt::format(
        "{} and {} are two models of one name, '{}'; give one another name in its model.toml",
        models[i - 1].model.parent_path().string(), models[i].model.parent_path().string(), models[i].name));
    models[i - 1].status = models[i].status = status;
  }
}

}  // namespace

Result<std::vector<ModelFolder>> scan_repository(const fs::path& repository, const ModelConfig& defaults) {
  std::error_code error;
  if (!fs::is_directory(repository, error)) {
    return Status::not_found(
        fmt::format("there is no model repository at '{}'; make a folder with a folder per model: {}/NAME/model.onnx",
                    repository.string(), repository.string()));
  }
  std::vector<ModelFolder> models;
  for (const auto& entry : fs::directory_iterator(repository, error)) {
    if (!entry.is_directory() || entry.path().filename().string().starts_with('.')) continue;
    models.push_back(read_folder(entry.path(), defaults));
  }
  if (error) return Status::invalid_argument(fmt::format("{}: {}", repository.string(), error.message()));
  std::sort(models.begin(), models.end(), [](const ModelFolder& a, const ModelFolder& b) {
    return std::pair(a.name, a.model) < std::pair(b.name, b.model);
  });
  mark_duplicates(models);
  return models;
}

}  // namespace foliot
