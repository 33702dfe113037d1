#include "foundation/core/catalog.h"

#include <string>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/base/mutex.h"

namespace foliot {

std::string_view to_string(ModelState state) {
  switch (state) {
    case ModelState::kUnavailable: return "UNAVAILABLE";
    case ModelState::kLoading: return "LOADING";
    case ModelState::kReady: return "READY";
    case ModelState::kUnloading: return "UNLOADING";
  }
  FOLIOT_CHECK(false);
}

std::string_view to_string(EntryRole role) {
  switch (role) {
    case EntryRole::kModel: return "model";
    case EntryRole::kPipeline: return "pipeline";
    case EntryRole::kApplication: return "application";
    case EntryRole::kPersonal: return "personal model";
    case EntryRole::kTask: return "task";
  }
  FOLIOT_CHECK(false);
}

void Catalog::put(CatalogEntry entry) {
  const auto next = std::make_shared<const CatalogEntry>(std::move(entry));
  EntryPtr last;  // goes after the lock is released
  {
    const MutexLock lock(mutex_);
    count(*next, 1);
    EntryPtr& place = entries_[next->name];
    if (place != nullptr) count(*place, -1);
    last = std::exchange(place, next);
  }
  notify(next->name, next);
}

void Catalog::put_all(std::vector<CatalogEntry> entries) {
  for (CatalogEntry& entry : entries) put(std::move(entry));
}

void Catalog::remove(std::string_view name) {
  EntryPtr removed;
  {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(name);
    if (found == entries_.end()) return;
    count(*found->second, -1);
    removed = std::move(found->second);
    entries_.erase(found);
  }
  notify(removed->name, nullptr);
}

Catalog::Watch Catalog::watch(OnChange on_change) {
  auto added = std::make_shared<const OnChange>(std::move(on_change));
  const MutexLock lock(watch_mutex_);
  std::erase_if(watches_, [](const auto& watch) { return watch.expired(); });
  watches_.push_back(added);
  return added;
}

void Catalog::notify(const std::string& name, const EntryPtr& entry) const {
  std::vector<std::weak_ptr<const OnChange>> watches;
  {
    const MutexLock lock(watch_mutex_);
    watches = watches_;
  }
  for (const auto& watch : watches) {
    if (const Watch on_change = watch.lock()) (*on_change)(name, entry);
  }
}

void Catalog::count(const CatalogEntry& entry, int by) {
  if (!entry.wanted) return;
  wanted_ += static_cast<size_t>(by);
  if (entry.state == ModelState::kReady) served_ += static_cast<size_t>(by);
  if (!entry.reason.empty()) unavailable_revision_.fetch_add(1);
}

Catalog::EntryPtr Catalog::find(std::string_view name) const {
  const ReaderLock lock(mutex_);
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : found->second;
}

bool Catalog::empty() const {
  const ReaderLock lock(mutex_);
  return entries_.empty();
}

Catalog::Entries Catalog::snapshot() const {
  const ReaderLock lock(mutex_);
  return entries_;
}

void Catalog::ask_for(std::string_view name) const {
  const ReaderLock lock(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) return;
  const MutexLock asked_lock(asked_mutex_);
  ask_for(*found->second);
}

void Catalog::ask_for(const CatalogEntry& entry) const {
  if (entry.models.empty() && asked_names_.insert(entry.name).second) asked_.push_back(entry.name);
  for (const std::string& model : entry.models) {
    const auto found = entries_.find(model);
    // A model's versions are models too.
    const bool is_below = found != entries_.end() && (found->second->role < entry.role || entry.versions != nullptr);
    if (is_below) ask_for(*found->second);
  }
}

std::vector<std::string> Catalog::take_asked() {
  const MutexLock lock(asked_mutex_);
  asked_names_.clear();
  return std::exchange(asked_, {});
}

bool Catalog::ready() const {
  const ReaderLock lock(mutex_);
  return ready_;
}

void Catalog::set_ready(bool ready) {
  const MutexLock lock(mutex_);
  ready_ = ready;
}

bool Catalog::can_serve(bool strict) const {
  const ReaderLock lock(mutex_);
  if (!ready_) return false;
  return strict ? served_ == wanted_ : served_ > 0 || wanted_ == 0;
}

namespace {

Status no_personal_model(const std::string& name) {
  return Status::invalid_argument("'" + name +
                                  "' is no personal model: versions are listed, compared, taken and rolled back of "
                                  "those alone");
}

}  // namespace

void ModelRepository::load_version(const std::string& name, const VersionRequest& request,
                                   std::function<void(Status)> done) {
  if (request.is_plain()) return load(name, std::move(done));
  done(no_personal_model(name));
}

void ModelRepository::list_versions(const std::string& name, std::function<void(Result<VersionList>)> done) {
  done(no_personal_model(name));
}

}  // namespace foliot
