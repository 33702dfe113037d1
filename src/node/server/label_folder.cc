#include "node/server/label_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "foundation/config/repository_path.h"
#include "models/repository/model_config.h"

namespace foliot {
namespace {

// All versions that it names count as served.
Result<VersionRules> rules_of(const VersionConfig& config, const std::string& file) {
  std::set<uint64_t> versions;
  for (const auto& [label, version] : config.labels) versions.insert(version);
  for (const auto& [name, percent] : config.split) {
    if (const auto version = parse_version(name)) versions.insert(*version);
  }
  if (const auto version = parse_version(config.shadow)) versions.insert(*version);
  return version_rules(config, {versions.begin(), versions.end()}, file);
}

}  // namespace

Result<std::vector<std::string>> LabelFolder::read() {
  std::vector<std::string> notes;
  std::set<std::string> gone = std::exchange(named_, {});
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<std::filesystem::path> entries, list_repository(folder_));
  for (const std::filesystem::path& entry : entries) {
    const std::filesystem::path file = entry / "model.toml";
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) continue;
    const Result<ModelConfig> config = read_model_config(file, {});
    Result<VersionRules> rules = config.ok() ? rules_of(config->versions, file.string()) : config.status();
    const std::string name = (config.ok() ? config->name : std::nullopt).value_or(entry.filename().string());
    gone.erase(name);
    if (!rules.ok()) {
      notes.push_back(fmt::format("model '{}': {}", name, rules.status().message()));
    } else {
      versions_.set_rules(name, std::move(rules).value());
    }
    named_.insert(name);
  }
  for (const std::string& name : gone) versions_.set_rules(name, {});
  return notes;
}

}  // namespace foliot
