#include "answer/inference/served_names.h"

#include <fmt/format.h>

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

}  // namespace foliot
