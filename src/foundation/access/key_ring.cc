#include "foundation/access/key_ring.h"

#include <fmt/format.h>

#include <set>

#include "foundation/config/toml_file.h"
#include "foundation/config/toml_reader.h"

namespace foliot {
namespace {

ScopeSet read_scopes(TomlReader& reader) {
  std::vector<std::string> names;
  reader.texts("scopes", names);
  ScopeSet scopes;
  for (const std::string& name : names) {
    if (const auto scope = scope_named(name)) {
      scopes.add(*scope);
    } else {
      reader.fail("scopes",
                  fmt::format("'{}' is not a scope; write infer, admin, metrics, feedback, observe or jobs", name));
    }
  }
  if (scopes.empty())
    reader.fail("scopes", "a key needs at least one scope: infer, admin, metrics, feedback, observe or jobs");
  return scopes;
}

KeyDigest read_digest(TomlReader& reader) {
  std::string text;
  reader.text("sha256", text);
  const auto digest = digest_from_hexadecimal(text);
  if (!digest) reader.fail("sha256", "must be the 64 hexadecimal digits that `foliot keys new` prints");
  return digest.value_or(KeyDigest());
}

KeyLimits read_limits(TomlReader& reader) {
  KeyLimits limits;
  if (reader.has("requests_per_second")) {
    reader.positive("requests_per_second", limits.requests_per_second.emplace());
  }
  if (reader.has("requests_in_flight")) {
    reader.whole("requests_in_flight", limits.requests_in_flight.emplace(), 1);
  }
  reader.whole("weight", limits.weight, 1, KeyLimits::kWeightMax);
  return limits;
}

}  // namespace

Result<KeyRing> KeyRing::read(const std::filesystem::path& file) {
  FOLIOT_ASSIGN_OR_RETURN(const toml::table root, read_toml_file(file));
  TomlReader reader(root, file.string());
  KeyRing ring;
  std::set<std::string> names;
  for (TomlReader& entry : reader.tables("keys")) {
    Entry key;
    entry.text("name", key.name);
    if (key.name.empty()) entry.fail("name", "a key needs a name, for the log");
    if (!names.insert(key.name).second) entry.fail("name", fmt::format("'{}' is there twice", key.name));
    key.scopes = read_scopes(entry);
    key.digest = read_digest(entry);
    key.limits = read_limits(entry);
    FOLIOT_RETURN_IF_ERROR(entry.finish());
    ring.entries_.push_back(std::move(key));
  }
  if (ring.entries_.empty()) reader.fail("has no [[keys]]; `foliot keys new NAME` makes one");
  FOLIOT_RETURN_IF_ERROR(reader.finish());
  return ring;
}

KeyRing::Decision KeyRing::decide(std::string_view key, Scope scope) const {
  const KeyDigest digest = digest_of(key);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    if (same_digest(entry.digest, digest)) found = &entry;
  }
  if (found == nullptr) return {};
  return {found->scopes.has(scope) ? Verdict::kGranted : Verdict::kWrongScope, found->name};
}

}  // namespace foliot
