#include "answer/inference/served_names.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

namespace foliot {

Result<std::shared_ptr<const ModelInfo>> ServedNames::find(std::string_view name, std::string_view version) const {
  return ready_info(name, version, catalog_.find(name));
}

Result<std::shared_ptr<const ModelInfo>> ServedNames::find_model(std::string_view name,
                                                                 std::string_view version) const {
  const Catalog::EntryPtr found = catalog_.find(name);
  if (found != nullptr && found->role == EntryRole::kApplication) {
    return Status::not_found(fmt::format("'{}' is not a model", name));
  }
  if (found != nullptr && found->role == EntryRole::kPersonal) {
    return Status::invalid_argument(fmt::format(
        "'{}' is a personal model, which has no inferences: call its predict, topk, observe or forget", name));
  }
  return ready_info(name, version, found);
}

Result<std::shared_ptr<const ModelInfo>> ServedNames::ready_info(std::string_view name, std::string_view version,
                                                                 const Catalog::EntryPtr& found) const {
  if (found != nullptr && found->versions != nullptr && !version.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(const Catalog::EntryPtr entry, version_of(*found, version));
    return ready_info(entry->name, "", entry);
  }
  // A server that starts may not know its models yet.
  if (found == nullptr && !catalog_.ready() && catalog_.empty())
    return Status::unavailable(fmt::format("model '{}' is not known yet: the server is not ready; try again", name));
  if (found == nullptr) return Status::not_found(fmt::format("unknown model '{}'", name));
  const CatalogEntry& entry = *found;
  if (!version.empty() && version != entry.version)
    return Status::not_found(
        fmt::format("model '{}' has no version '{}'; version '{}' is served", name, version, entry.version));
  if (entry.state == ModelState::kLoading) catalog_.ask_for(name);
  if (entry.state != ModelState::kReady || entry.info == nullptr)
    return Status::unavailable(fmt::format("model '{}' is not ready: {}{}{}", name, to_string(entry.state),
                                           entry.reason.empty() ? "" : ": ", entry.reason));
  return entry.info;
}

Result<Catalog::EntryPtr> ServedNames::version_of(const CatalogEntry& model, std::string_view version) const {
  FOLIOT_ASSIGN_OR_RETURN(const uint64_t number, model.versions->find(model.name, version));
  Catalog::EntryPtr entry = catalog_.find(versioned_name(model.name, std::to_string(number)));
  if (entry != nullptr) return entry;
  return Status::not_found(fmt::format("version {} of model '{}' is not served any more; served are {}", number,
                                       model.name, list_versions(model.versions->versions)));
}

std::shared_ptr<const VersionTable> ServedNames::versions_of(std::string_view name) const {
  const Catalog::EntryPtr found = catalog_.find(name);
  return found == nullptr ? nullptr : found->versions;
}

Result<ServedNames::ChosenVersion> ServedNames::choose_version(std::string_view name, std::string_view version,
                                                               std::string_view split_key) const {
  const Catalog::EntryPtr found = catalog_.find(name);
  if (found == nullptr || found->versions == nullptr) return ChosenVersion();
  if (!version.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(Catalog::EntryPtr named, version_of(*found, version));
    return ChosenVersion{std::move(named)};
  }
  const std::optional<uint64_t> picked = found->versions->pick(split_key);
  if (!picked) return ChosenVersion();
  const auto ready = [&](uint64_t number) {
    Catalog::EntryPtr entry = catalog_.find(versioned_name(name, std::to_string(number)));
    return entry != nullptr && entry->state == ModelState::kReady ? entry : nullptr;
  };
  if (Catalog::EntryPtr entry = ready(*picked)) return ChosenVersion{std::move(entry), found->versions};
  // Of a version that is not ready one that has a share, too, takes the requests; else the highest that is.
  for (const VersionRules::Share& share : found->versions->rules.split) {
    if (share.percent == 0) continue;
    if (Catalog::EntryPtr entry = ready(share.version)) return ChosenVersion{std::move(entry), found->versions};
  }
  return ChosenVersion();
}

Result<std::vector<std::shared_ptr<const ModelInfo>>> ServedNames::find_all(std::string_view name) const {
  FOLIOT_ASSIGN_OR_RETURN(std::shared_ptr<const ModelInfo> highest, find(name, ""));
  std::vector<std::shared_ptr<const ModelInfo>> all;
  const Catalog::EntryPtr found = catalog_.find(client_name(name));
  if (found != nullptr && found->versions != nullptr) {
    for (const std::string& version : found->models) {
      const Catalog::EntryPtr entry = catalog_.find(version);
      if (entry != nullptr && entry->info != nullptr) all.push_back(entry->info);
    }
  }
  if (all.empty()) all.push_back(std::move(highest));
  return all;
}

}  // namespace foliot
