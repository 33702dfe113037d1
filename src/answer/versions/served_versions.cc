#include "answer/versions/served_versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace foliot {
namespace {

bool is_lone(const Catalog::EntryPtr& entry) { return entry != nullptr && entry->versions == nullptr; }

}  // namespace

ServedVersions::ServedVersions(Catalog& catalog) : catalog_(catalog) {
  watch_ = catalog_.watch([this](const std::string& name, const Catalog::EntryPtr& entry) { on_change(name, entry); });
}

void ServedVersions::on_change(const std::string& name, const Catalog::EntryPtr& entry) {
  // A thread that changes entries of other roles may hold locks that are taken after this one.
  if (entry != nullptr && (entry->role != EntryRole::kModel || entry->versions != nullptr)) return;
  const std::string_view client = client_name(name);
  const bool is_version = client.size() < name.size();
  const MutexLock lock(mutex_);
  if (is_version) {
    const std::optional<uint64_t> number = parse_version(std::string_view(name).substr(client.size() + 1));
    if (!number) return;
    auto model = models_.find(client);
    if (entry != nullptr) {
      if (model == models_.end()) model = models_.try_emplace(std::string(client)).first;
      model->second.versions.insert(*number);
      if (entry->state == ModelState::kReady && !model->second.is_one) model->second.is_lone = false;
      // It was loaded again.
      const auto out = model->second.taken_out.find(*number);
      if (out != model->second.taken_out.end() && entry->reason.empty()) set_reason(model->first, *number, out->second);
    } else if (model != models_.end() && model->second.versions.erase(*number) > 0 && model->second.versions.empty()) {
      model->second.has_rules = false;
    }
  } else if (const auto model = models_.find(client); model != models_.end()) {
    model->second.is_lone = entry != nullptr && entry->state == ModelState::kReady;
  }
  if (const auto model = models_.find(client); model != models_.end()) update(model->first, model->second);
}

void ServedVersions::set_rules(const std::string& name, VersionRules rules) {
  const MutexLock lock(mutex_);
  Model& model = models_[name];
  model.is_one = false;
  if (model.has_rules && model.rules == rules) return model.next.reset();
  if (std::exchange(model.has_rules, true)) {
    model.next = std::move(rules);
  } else {
    model.rules = std::move(rules);
    put_back(name, model);
  }
  update(name, model);
}

void ServedVersions::take_out(const std::string& name, uint64_t version, const std::string& reason) {
  const MutexLock lock(mutex_);
  const auto found = models_.find(name);
  if (found == models_.end()) return;
  VersionRules& rules = found->second.rules;
  const auto share = std::ranges::find(rules.split, version, &VersionRules::Share::version);
  if (share == rules.split.end() || version == rules.first().version || found->second.taken_out.contains(version))
    return;
  set_reason(name, version, found->second.taken_out[version] = "taken out of the split: " + reason);
  update(found->first, found->second);
}

void ServedVersions::put_back(const std::string& name, Model& model) {
  for (const auto& [version, reason] : std::exchange(model.taken_out, {})) set_reason(name, version, "");
}

void ServedVersions::set_reason(const std::string& name, uint64_t version, const std::string& reason) {
  const Catalog::EntryPtr entry = catalog_.find(versioned_name(name, std::to_string(version)));
  if (entry == nullptr || entry->reason == reason) return;
  CatalogEntry changed = *entry;
  changed.reason = reason;
  catalog_.put(std::move(changed));
}

void ServedVersions::set_one(const std::string& name) {
  const MutexLock lock(mutex_);
  if (const auto model = models_.find(name); model != models_.end()) model->second.is_one = true;
}

bool ServedVersions::is_ready(const std::string& name, uint64_t version) const {
  const Catalog::EntryPtr entry = catalog_.find(versioned_name(name, std::to_string(version)));
  return entry != nullptr && entry->state == ModelState::kReady;
}

void ServedVersions::update(const std::string& name, Model& model) {
  const Catalog::EntryPtr shown = catalog_.find(name);
  if (model.versions.empty()) {
    if (shown != nullptr && shown->versions != nullptr) catalog_.remove(name);
    return;
  }
  if (model.next) {
    const auto ready = [&](uint64_t version) { return is_ready(name, version); };
    const VersionRules& next = *model.next;
    if (std::ranges::all_of(next.labels, [&](const auto& label) { return ready(label.second); }) &&
        std::ranges::all_of(next.split, ready, &VersionRules::Share::version)) {
      model.rules = *std::exchange(model.next, std::nullopt);
      put_back(name, model);
    }
  }
  if (shown != nullptr && shown->role != EntryRole::kModel) return;
  CatalogEntry entry = entry_of(name, model);
  if (is_lone(shown) && shown->state == ModelState::kReady) {
    const auto earlier = parse_version(shown->version);
    const auto highest = entry.info == nullptr ? std::nullopt : parse_version(entry.info->version);
    if (model.is_lone || !highest || (earlier && *earlier > *highest)) return;
  }
  const bool is_shown = shown != nullptr && shown->versions != nullptr && shown->state == entry.state &&
                        shown->reason == entry.reason && shown->info == entry.info && shown->wanted == entry.wanted &&
                        shown->versions->versions == entry.versions->versions &&
                        shown->versions->rules == entry.versions->rules;
  if (!is_shown) catalog_.put(std::move(entry));
}

CatalogEntry ServedVersions::entry_of(const std::string& name, const Model& model) const {
  CatalogEntry entry{.name = name, .version = {}, .reason = {}, .info = {}, .wanted = false};
  auto table = std::make_shared<VersionTable>();
  table->rules = model.rules;
  for (VersionRules::Share& share : table->rules.split) {
    if (!model.taken_out.contains(share.version)) continue;
    const uint64_t first = model.rules.first().version;
    std::ranges::find(table->rules.split, first, &VersionRules::Share::version)->percent +=
        std::exchange(share.percent, 0);
  }
  table->split_count = model.split_count;
  bool is_loading = false;
  for (const uint64_t version : model.versions) {
    entry.models.push_back(versioned_name(name, std::to_string(version)));
    const Catalog::EntryPtr found = catalog_.find(entry.models.back());
    if (found == nullptr) continue;
    entry.wanted = entry.wanted || found->wanted;
    entry.version = found->version;
    if (found->wanted) table->versions.push_back(version);
    is_loading = is_loading || found->state == ModelState::kLoading;
    if (!found->reason.empty()) {
      entry.reason += fmt::format("{}version {}: {}", entry.reason.empty() ? "" : "; ", version, found->reason);
    }
    if (found->state == ModelState::kReady) entry.info = found->info;
  }
  if (entry.info != nullptr) entry.version = entry.info->version;
  entry.state = entry.info != nullptr ? ModelState::kReady
                : is_loading          ? ModelState::kLoading
                                      : ModelState::kUnavailable;
  entry.versions = std::move(table);
  return entry;
}

}  // namespace foliot
