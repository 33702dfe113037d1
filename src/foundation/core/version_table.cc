#include "foundation/core/version_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <span>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/base/hash.h"

namespace foliot {
namespace {

constexpr uint64_t kSlots = 100;
// Has no factor in common with kSlots, so that each 100 requests fill every slot once; near the golden section of it,
// so that those of one version are far apart. Each 100 begin at another slot, or a client that asks for the same rows
// over and over would have some of them always answered by one version.
constexpr uint64_t kStride = 61;

}  // namespace

std::optional<uint64_t> parse_version(std::string_view text) {
  uint64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size() || text.front() == '0') return std::nullopt;
  return version;
}

std::string versioned_name(std::string_view name, std::string_view version) {
  return fmt::format("{}/{}", name, version);
}

std::string_view client_name(std::string_view name) { return name.substr(0, name.find('/')); }

std::string list_versions(const std::vector<uint64_t>& versions) {
  if (versions.empty()) return "none";
  if (versions.size() == 1) return std::to_string(versions.front());
  return fmt::format("{} and {}", fmt::join(versions.begin(), versions.end() - 1, ", "), versions.back());
}

std::string to_string(const VersionChoice& choice) {
  if (choice.all) return "\"all\"";
  if (!choice.listed.empty()) return fmt::format("[{}]", fmt::join(choice.listed, ", "));
  return choice.latest == 1 ? "\"latest\"" : fmt::format("{{latest = {}}}", choice.latest);
}

std::vector<uint64_t> choose_versions(const VersionChoice& choice, const std::vector<uint64_t>& there) {
  if (choice.all) return there;
  if (choice.listed.empty()) {
    return {there.end() - std::min<ptrdiff_t>(choice.latest, std::ssize(there)), there.end()};
  }
  std::vector<uint64_t> chosen;
  std::ranges::set_intersection(choice.listed, there, std::back_inserter(chosen));
  return chosen;
}

const VersionRules::Share& VersionRules::first() const {
  return *std::ranges::max_element(split, {},
                                   [](const Share& share) { return std::pair(share.percent, ~share.version); });
}

Result<uint64_t> VersionTable::find(std::string_view name, std::string_view version) const {
  if (const auto label = rules.labels.find(version); label != rules.labels.end()) return label->second;
  if (const auto number = parse_version(version)) {
    if (std::ranges::binary_search(versions, *number)) return *number;
    return Status::not_found(fmt::format("version {} of model '{}' is not served; served {} {}", *number, name,
                                         versions.size() == 1 ? "is" : "are", list_versions(versions)));
  }
  std::vector<std::string_view> labels;
  for (const auto& [label, number] : rules.labels) labels.push_back(label);
  return Status::not_found(
      fmt::format("model '{}' has no label '{}'; it has {}; served are the versions {}", name, version,
                  labels.empty() ? "none" : fmt::format("'{}'", fmt::join(labels, "', '")), list_versions(versions)));
}

std::optional<uint64_t> VersionTable::pick(std::string_view key) const {
  if (rules.split.empty()) return std::nullopt;
  uint64_t slot = 0;
  if (key.empty()) {
    const uint64_t request = split_count->fetch_add(1, std::memory_order_relaxed);
    const std::array hundred{request / kSlots};
    slot = (request % kSlots * kStride + hash64(std::as_bytes(std::span(hundred)))) % kSlots;
  } else {
    slot = hash64(std::as_bytes(std::span(key))) % kSlots;
  }
  for (const VersionRules::Share& share : rules.split) {
    if (slot < share.percent) return share.version;
    slot -= share.percent;
  }
  FOLIOT_CHECK(false);  // they add up to 100
}

}  // namespace foliot
