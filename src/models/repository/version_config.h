// VersionConfig: what a model.toml says of the versions of a model:
//
//   versions = "latest"       # or {latest = 2}, [1, 3], "all"
//   [labels]
//   stable = 1
//   [split]                   # by labels or versions, in percent; together 100
//   stable = 95
//   canary = 5
//
// and beside `versions`, of those with a split: shadow = "canary", rollback = true.
#ifndef FOLIOT_MODELS_REPOSITORY_VERSION_CONFIG_H_
#define FOLIOT_MODELS_REPOSITORY_VERSION_CONFIG_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/config/toml_reader.h"
#include "foundation/core/version_table.h"

namespace foliot {

struct VersionConfig {
  VersionChoice choice{};
  std::map<std::string, uint64_t> labels{};
  std::map<std::string, uint32_t> split{};  // percent
  std::string shadow{};                     // a label or version; empty: none
  bool rollback = false;

  // Whether one version is served, under the model's name alone.
  bool is_one() const { return choice.is_one() && labels.empty() && split.empty() && shadow.empty() && !rollback; }
};

// Reads these keys of model.toml into `config`. Errors are the reader's; kInvalidArgument of a table within.
Status read_version_config(TomlReader& reader, VersionConfig& config);

// The rules among these versions. Errors: kInvalidArgument naming a label or a share without such a version. `file`:
// for errors.
Result<VersionRules> version_rules(const VersionConfig& config, const std::vector<uint64_t>& versions,
                                   const std::string& file);

}  // namespace foliot

#endif  // FOLIOT_MODELS_REPOSITORY_VERSION_CONFIG_H_
