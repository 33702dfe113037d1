#include "answer/personal/service/personal_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "foundation/base/folder_listing.h"
#include "foundation/base/units.h"
#include "foundation/config/repository_path.h"
#include "foundation/config/toml_file.h"
#include "foundation/config/toml_reader.h"

namespace foliot {
namespace {

constexpr std::string_view kPersonalFile = "personal.toml";

void to_float(TomlReader& reader, std::string_view key, float& value) {
  double read = value;
  reader.not_negative(key, read);
  value = static_cast<float>(read);
}

void read_choice(TomlReader& reader, std::string_view key, std::string_view first, std::string_view second,
                 bool& is_first) {
  std::string text(is_first ? first : second);
  reader.text(key, text);
  if (text != first && text != second) {
    reader.fail(key, fmt::format("is \"{}\": must be \"{}\" or \"{}\"", text, first, second));
  }
  is_first = text == first;
}

Status read_exploration(std::optional<TomlReader> reader, Exploration& exploration) {
  if (!reader) return Status();
  std::string name;
  reader->text("name", name);
  if (!name.empty()) {
    const std::optional<ExplorationKind> kind = exploration_named(name);
    if (!kind) reader->fail("name", fmt::format("is \"{}\": must be greedy, epsilon, linucb or thompson", name));
    if (kind) exploration.kind = *kind;
  }
  reader->share("epsilon", exploration.epsilon);
  to_float(*reader, "alpha", exploration.alpha);
  to_float(*reader, "deviation", exploration.deviation);
  reader->share("pool", exploration.pool);
  return reader->finish();
}

// A quarter is RocksDB's.
void read_users_memory(TomlReader& reader, PersonalSpec& spec) {
  constexpr std::string_view kKey = "users_memory";
  constexpr uint64_t kBytesMin = 32 << 20;
  constexpr uint64_t kStoreBytesMax = 1 << 30;
  if (!reader.has(kKey)) return;
  uint64_t bytes = 0;
  reader.bytes(kKey, bytes);
  if (bytes < kBytesMin) reader.fail(kKey, fmt::format("is {} bytes: must be 32MiB or more", bytes));
  spec.store_bytes = std::min(bytes / 4, kStoreBytesMax);
  spec.options.users_bytes_max = bytes - spec.store_bytes;
}

Status read_limits(std::optional<TomlReader> reader, PersonalSpec& spec) {
  if (!reader) return Status();
  PersonalModel::Options& options = spec.options;
  std::optional<FeatureSource::Options>& features = spec.features;
  for (const char* key : {"feature_cache", "inputs"}) {
    if (!features && reader->has(key)) reader->fail(key, "is of features that a model computes: name it as `features`");
  }
  if (features) {
    reader->bytes("feature_cache", features->cache_bytes);
    reader->bytes("inputs", options.inputs_bytes_max);
  }
  uint64_t users = options.users_max;
  uint64_t observations = options.observations_per_user_max;
  uint64_t factors = options.table.factors_max;
  double least = options.value_min;
  double most = options.value_max;
  reader->whole("users", users, 1);
  reader->whole("observations_per_user", observations, 1, PersonalModel::kObservationsPerUserMax);
  reader->whole("factors", factors, 1);
  reader->whole("observations_per_snapshot", options.observations_per_snapshot, 1);
  reader->duration("snapshot_after", options.snapshot_after);
  if (options.snapshot_after < Duration::seconds(60)) {
    reader->fail("snapshot_after", fmt::format("is {}: must be 1m or more", format_duration(options.snapshot_after)));
  }
  reader->bytes("lists", options.lists_bytes_max);
  read_users_memory(*reader, spec);
  options.table.learns_range = !reader->has("value_min") && !reader->has("value_max");
  reader->number("value_min", least);
  reader->number("value_max", most);
  if (!(least < most)) reader->fail("value_min", fmt::format("is {}: must be below value_max, {}", least, most));
  options.users_max = users;
  options.observations_per_user_max = observations;
  options.table.factors_max = factors;
  options.value_min = static_cast<float>(least);
  options.value_max = static_cast<float>(most);
  return reader->finish();
}

constexpr std::array kTriggers = {"on_drift", "every", "after_observations"};

Status read_retrain(std::optional<TomlReader> reader, PersonalSpec& spec) {
  if (!reader) return Status();
  reader->not_negative("loss_max", spec.options.retrain.loss_max);
  reader->whole("observations_max", spec.options.retrain.observations_max);
  RetrainTriggers& triggers = spec.retrain;
  for (const char* key : kTriggers) {
    if (!spec.features || !reader->has(key)) continue;
    reader->fail(key, fmt::format("is of features in a table, and model '{}' computes them: train that one",
                                  spec.features->model));
  }
  reader->flag("on_drift", triggers.on_drift);
  reader->duration("every", triggers.every);
  if (triggers.every && *triggers.every < RetrainTriggers::kEveryMin) {
    reader->fail("every", fmt::format("is {}: must be {} or more", format_duration(*triggers.every),
                                      format_duration(RetrainTriggers::kEveryMin)));
  }
  if (reader->has("after_observations")) reader->whole("after_observations", triggers.after_observations, 1);
  for (const char* key : {"command", "time_limit"}) {
    if (!triggers.any() && reader->has(key)) {
      reader->fail(key, fmt::format("is never used: say when, by {}", fmt::join(kTriggers, ", ")));
    }
  }
  reader->texts("command", triggers.command);
  reader->positive("time_limit", triggers.time_limit);
  return reader->finish();
}

Status read_spec(const toml::table& table, const std::string& file, PersonalSpec& spec) {
  TomlReader reader(table, file);
  std::string features = "items";
  reader.text("features", features);
  std::string output;
  if (features != "items") {
    reader.text("features_output", output);
    spec.features = FeatureSource::Options{.model = features, .output = output};
  }
  read_choice(reader, "prior", "mean", "zero", spec.options.table.prior_is_mean);
  double lambda = spec.options.table.lambda;
  reader.positive("lambda", lambda);
  spec.options.table.lambda = static_cast<float>(lambda);
  bool is_on_disk = true;
  read_choice(reader, "durability", "disk", "async", is_on_disk);
  spec.options.durability_is_async = !is_on_disk;
  reader.positive("default_slo", spec.default_slo);
  reader.whole("replicas", spec.replicas, 1, 2);
  FOLIOT_RETURN_IF_ERROR(read_exploration(reader.table("exploration"), spec.options.exploration));
  FOLIOT_RETURN_IF_ERROR(read_limits(reader.table("limits"), spec));
  FOLIOT_RETURN_IF_ERROR(read_retrain(reader.table("retrain"), spec));
  return reader.finish();
}

Status check_other_files(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const char* other : {"model.onnx", "model.py", "application.toml", "pipeline.toml"}) {
    if (!std::filesystem::exists(folder / other, ignored)) continue;
    return Status::invalid_argument(
        fmt::format("{} has {} and {}; move one of them to another folder", folder.string(), other, kPersonalFile));
  }
  return Status();
}

}  // namespace

PersonalSpec read_personal(const std::filesystem::path& folder) {
  PersonalSpec spec{.name = folder.filename().string(), .status = check_other_files(folder), .folder = folder};
  if (!spec.status.ok()) return spec;
  const std::filesystem::path file = folder / kPersonalFile;
  const Result<toml::table> table = read_toml_file(file);
  spec.status = table.ok() ? read_spec(*table, file.string(), spec) : table.status();
  return spec;
}

Result<std::vector<PersonalSpec>> scan_personal(const std::filesystem::path& repository) {
  std::vector<PersonalSpec> specs;
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<std::filesystem::path> entries, list_repository(repository));
  for (const std::filesystem::path& entry : entries) {
    std::error_code ignored;
    if (entry.filename().string().starts_with('.')) continue;
    if (!std::filesystem::is_regular_file(entry / kPersonalFile, ignored)) continue;
    specs.push_back(read_personal(entry));
  }
  return specs;
}

std::optional<uint64_t> version_number(std::string_view name) {
  uint64_t number = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (failed != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

Result<std::vector<std::filesystem::path>> version_folders(const std::filesystem::path& folder) {
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<std::filesystem::path> entries, list_folder(folder));
  std::vector<std::pair<uint64_t, std::filesystem::path>> numbered;
  for (const std::filesystem::path& entry : entries) {
    const std::optional<uint64_t> number = version_number(entry.filename().string());
    if (!number) continue;
    FOLIOT_ASSIGN_OR_RETURN(const bool is_folder, leads_to_folder(entry));
    if (is_folder) numbered.emplace_back(*number, entry);
  }
  std::ranges::sort(numbered);
  std::vector<std::filesystem::path> versions;
  for (auto& [number, path] : numbered) versions.push_back(std::move(path));
  return versions;
}

Result<std::filesystem::path> newest_version(const std::filesystem::path& folder) {
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<std::filesystem::path> versions, version_folders(folder));
  if (!versions.empty()) return versions.back();
  return Status::not_found(fmt::format(
      "{} has no version: make a folder with a number for a name and an items.features, such as {}/1/items.features",
      folder.string(), folder.string()));
}

}  // namespace foliot
