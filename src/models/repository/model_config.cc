#include "models/repository/model_config.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "engine/compiler/bucket_suggestion.h"
#include "foundation/base/folder_listing.h"
#include "foundation/config/toml_file.h"
#include "foundation/config/toml_reader.h"
#include "foundation/core/action.h"

namespace foliot {
namespace {

void read_precision(TomlReader& reader, Precision& to) {
  std::string text;
  reader.text("precision", text);
  if (text.empty()) return;
  const std::optional<Precision> precision = parse_precision(text);
  if (!precision) return reader.fail_value("precision", "must be \"float32\" or \"bfloat16\"");
  to = *precision;
}

Status read_buckets(TomlReader reader, BucketSizes& to) {
  to.clear();
  for (const std::string& name : reader.keys()) {
    std::vector<uint32_t> sizes;
    reader.ascending(name, sizes);
    if (!to.empty() && sizes.size() != to.begin()->second.size()) {
      reader.fail_value(name,
                        fmt::format("must have {} entries, as '{}' has, since bucket i takes entry i of each list",
                                    to.begin()->second.size(), to.begin()->first));
    }
    to[name].assign(sizes.begin(), sizes.end());
  }
  return reader.finish();
}

Status read(TomlReader reader, ModelConfig& config) {
  reader.text("name", config.name);
  reader.positive("default_slo", config.default_slo);
  reader.positive("weight", config.weight);
  reader.duration_or_auto("batch_delay", config.batch_delay);
  if (config.batch_delay > kBatchDelayMax) {
    reader.fail("batch_delay", fmt::format("is at most {:g}s", kBatchDelayMax.to_seconds()));
  }
  reader.flag("cache", config.cache);
  FOLIOT_RETURN_IF_ERROR(read_version_config(reader, config.versions));
  reader.ascending("batch_sizes", config.compile.batch_sizes, kCompiledBatchSizeMax);
  reader.texts("batch_dimension", config.compile.batch_dimensions);
  read_precision(reader, config.compile.precision);
  if (auto buckets = reader.table("buckets")) {
    FOLIOT_RETURN_IF_ERROR(read_buckets(*std::move(buckets), config.compile.buckets));
  }
  if (auto container = reader.table("container")) {
    FOLIOT_ASSIGN_OR_RETURN(config.container, read_container_config(*std::move(container)));
  }
  return reader.finish();
}

}  // namespace

std::filesystem::path config_file_of(const std::filesystem::path& model) {
  const std::filesystem::path folder = model.parent_path();
  const std::string version = folder.filename().string();
  const bool is_version = !version.empty() && version.find_first_not_of("0123456789") == std::string::npos;
  return (is_version ? folder.parent_path() : folder) / "model.toml";
}

Result<ModelConfig> read_model_config(const std::filesystem::path& file, const ModelConfig& defaults) {
  ModelConfig config = defaults;
  std::error_code error;
  // A link counts as there wherever it leads: settings are not left out in silence.
  if (!std::filesystem::exists(std::filesystem::symlink_status(file, error))) return config;
  FOLIOT_ASSIGN_OR_RETURN(const bool can_be_read, leads_to_file(file));
  if (!can_be_read) return Status::invalid_argument(fmt::format("{} is no regular file", file.string()));
  FOLIOT_ASSIGN_OR_RETURN(const toml::table table, read_toml_file(file));
  FOLIOT_RETURN_IF_ERROR(read(TomlReader(table, file.string()), config));
  return config;
}

}  // namespace foliot
