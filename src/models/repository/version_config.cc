#include "models/repository/version_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace foliot {
namespace {

constexpr uint32_t kVersionMax = std::numeric_limits<uint32_t>::max();  // such as seconds since 1970
constexpr size_t kVersionLabelBytesMax = 64;

Status read_choice(TomlReader& reader, VersionChoice& to) {
  constexpr std::string_view kMust = "must be \"latest\", {latest = 2}, a list such as [1, 3], or \"all\"";
  if (reader.is_table("versions")) {
    std::optional<TomlReader> table = reader.table("versions");
    to = {};
    if (!table->has("latest")) return reader.fail_value("versions", kMust), Status();
    table->whole("latest", to.latest, 1, kVersionMax);
    return table->finish();
  }
  if (reader.is_text("versions")) {
    std::string text;
    reader.text("versions", text);
    if (text != "latest" && text != "all") reader.fail_value("versions", kMust);
    to = {.all = text == "all"};
    return Status();
  }
  if (!reader.has("versions")) return Status();
  std::vector<uint32_t> listed;
  reader.wholes("versions", listed, kVersionMax);
  std::ranges::sort(listed);
  const bool twice = std::ranges::adjacent_find(listed) != listed.end();
  if (listed.empty() || listed.front() == 0 || twice) reader.fail_value("versions", kMust);
  to = {.listed = {listed.begin(), listed.end()}};
  return Status();
}

Status read_labels(TomlReader reader, std::map<std::string, uint64_t>& to) {
  to.clear();
  for (const std::string& label : reader.keys()) {
    if (label.empty() || label.size() > kVersionLabelBytesMax || label.find('/') != std::string::npos ||
        label.find_first_not_of("0123456789") == std::string::npos) {
      reader.fail(label,
                  fmt::format("is no label: one has 1 to {} bytes, no '/', and is no number", kVersionLabelBytesMax));
    }
    reader.whole(label, to[label], 1, kVersionMax);
  }
  return reader.finish();
}

Status read_split(TomlReader reader, std::map<std::string, uint32_t>& to) {
  to.clear();
  for (const std::string& share : reader.keys()) reader.whole(share, to[share], 0, 100);
  const uint32_t sum = std::accumulate(to.begin(), to.end(), 0U,
                                       [](uint32_t before, const auto& share) { return before + share.second; });
  if (sum != 100) reader.fail(fmt::format("[split] adds up to {}, and must to 100: these are percent", sum));
  return reader.finish();
}

Status no_such_version(const std::string& file, const std::string& what, const std::vector<uint64_t>& versions) {
  return Status::invalid_argument(fmt::format("{}: {}; served are {}", file, what, list_versions(versions)));
}

std::optional<uint64_t> version_named(const VersionConfig& config, const std::string& name) {
  const auto label = config.labels.find(name);
  return label != config.labels.end() ? label->second : parse_version(name);
}

Status read_shadow(const VersionConfig& config, const std::vector<uint64_t>& versions, const std::string& file,
                   VersionRules& rules) {
  const std::optional<uint64_t> version = version_named(config, config.shadow);
  if (!version || !std::ranges::binary_search(versions, *version)) {
    return no_such_version(
        file, fmt::format("shadow is '{}', which is no label and no version that is served", config.shadow), versions);
  }
  const auto answers = [&](const VersionRules::Share& share) { return share.version == *version && share.percent > 0; };
  if (rules.split.empty() || std::ranges::any_of(rules.split, answers)) {
    return Status::invalid_argument(
        fmt::format("{}: shadow is '{}', and another version must answer: give a [split] that has it not, such as "
                    "stable = 100",
                    file, config.shadow));
  }
  rules.shadow = *version;
  return Status();
}

}  // namespace

Status read_version_config(TomlReader& reader, VersionConfig& config) {
  FOLIOT_RETURN_IF_ERROR(read_choice(reader, config.choice));
  reader.text("shadow", config.shadow);
  reader.flag("rollback", config.rollback);
  if (auto labels = reader.table("labels")) FOLIOT_RETURN_IF_ERROR(read_labels(*std::move(labels), config.labels));
  if (auto split = reader.table("split")) FOLIOT_RETURN_IF_ERROR(read_split(*std::move(split), config.split));
  return Status();
}

Result<VersionRules> version_rules(const VersionConfig& config, const std::vector<uint64_t>& versions,
                                   const std::string& file) {
  VersionRules rules;
  for (const auto& [label, version] : config.labels) {
    if (!std::ranges::binary_search(versions, version)) {
      return no_such_version(file, fmt::format("label '{}' is version {}, which is not served", label, version),
                             versions);
    }
    rules.labels.emplace(label, version);
  }
  for (const auto& [name, percent] : config.split) {
    const std::optional<uint64_t> version = version_named(config, name);
    if (!version || !std::ranges::binary_search(versions, *version)) {
      return no_such_version(
          file, fmt::format("[split] has '{}', which is no label and no version that is served", name), versions);
    }
    rules.split.push_back({*version, percent});
  }
  rules.rollback = config.rollback;
  if (config.rollback && rules.split.size() < 2) {
    return Status::invalid_argument(
        fmt::format("{}: rollback compares the versions of a [split], which has {}; give it two, such as stable = 95 "
                    "and canary = 5",
                    file, rules.split.size()));
  }
  if (!config.shadow.empty()) FOLIOT_RETURN_IF_ERROR(read_shadow(config, versions, file, rules));
  return rules;
}

}  // namespace foliot
