// VersionTable: the versions of a model that are served side by side, and which of them a request gets.
//
// Each of them is a model of its own in the catalog and everywhere below, named by versioned_name(): no model that
// clients name has a '/'. The entry of the name that clients call has this table.
#ifndef FOLIOT_FOUNDATION_CORE_VERSION_TABLE_H_
#define FOLIOT_FOUNDATION_CORE_VERSION_TABLE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foundation/base/status.h"

namespace foliot {

// Of a whole number without a sign or zeros before it; nullopt: it is none, or 0.
std::optional<uint64_t> parse_version(std::string_view text);

// "digits", "3" -> "digits/3".
std::string versioned_name(std::string_view name, std::string_view version);
// "digits/3" -> "digits"; a name without a version is what clients call already.
std::string_view client_name(std::string_view name);

// "1, 3 and 4"; "none".
std::string list_versions(const std::vector<uint64_t>& versions);

// Which versions of a folder are served.
struct VersionChoice {
  bool all = false;
  uint32_t latest = 1;             // so many, the highest; unless they are listed
  std::vector<uint64_t> listed{};  // ascending

  // However many there are, one is served: it has the model's name, and another one takes its place.
  bool is_one() const { return !all && (listed.empty() ? latest == 1 : listed.size() == 1); }
  bool operator==(const VersionChoice&) const = default;
};

// As in model.toml: "[1, 3]".
std::string to_string(const VersionChoice& choice);

// Of those that there are, ascending. What is listed and not there is left out.
std::vector<uint64_t> choose_versions(const VersionChoice& choice, const std::vector<uint64_t>& there);

// Which of the versions a request gets.
struct VersionRules {
  struct Share {
    uint64_t version = 0;
    uint32_t percent = 0;
    bool operator==(const Share&) const = default;
  };

  std::map<std::string, uint64_t, std::less<>> labels{};
  std::vector<Share> split{};  // of requests that name no version; empty, or it adds up to 100
  uint64_t shadow = 0;         // gets a copy of what is split, which no client sees; 0: none
  bool rollback = false;       // whether a version of the split is taken out that is worse than the first() one

  // The version with the largest share, of equal ones the lowest. REQUIRES: the split is not empty.
  const Share& first() const;
  bool operator==(const VersionRules&) const = default;
};

// Threading: any thread; only the counter changes.
struct VersionTable {
  std::vector<uint64_t> versions;  // ascending
  VersionRules rules{};
  // Requests that were split without a key so far. Kept from one table of a model to the next.
  std::shared_ptr<std::atomic<uint64_t>> split_count = std::make_shared<std::atomic<uint64_t>>(0);

  // By a number or a label. Errors: kNotFound naming what there is. `name`: the model's, for errors.
  Result<uint64_t> find(std::string_view name, std::string_view version) const;
  // For a request that names no version; nullopt: there is no split. One key always gets the same version. Requests
  // without a key are spread evenly: of each hundred a version gets exactly its share.
  std::optional<uint64_t> pick(std::string_view key) const;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_VERSION_TABLE_H_
