#include "core/catalog.h"

#include <mutex>
#include <utility>

#include "base/check.h"

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

void Catalog::put(CatalogEntry entry) {
  auto next = std::make_shared<const CatalogEntry>(std::move(entry));
  const std::string name = next->name;
  {
    const std::lock_guard lock(mutex_);
    count(*next, 1);
    EntryPtr& place = entries_[name];
    if (place != nullptr) count(*place, -1);
    place.swap(next);  // the last one is taken apart after the lock is released
  }
  notify(name);
}

void Catalog::put_all(std::vector<CatalogEntry> entries) {
  for (CatalogEntry& entry : entries) put(std::move(entry));
}

void Catalog::remove(std::string_view name) {
  EntryPtr removed;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(name);
    if (found == entries_.end()) return;
    count(*found->second, -1);
    removed = std::move(found->second);
    entries_.erase(found);
  }
  notify(std::string(name));
}

void Catalog::watch(std::function<void(const std::string&)> on_change) {
  auto next = on_change ? std::make_shared<const OnChange>(std::move(on_change)) : nullptr;
  const std::lock_guard lock(watch_mutex_);
  on_change_.swap(next);
}

void Catalog::notify(const std::string& name) const {
  std::shared_ptr<const OnChange> on_change;
  {
    const std::lock_guard lock(watch_mutex_);
    on_change = on_change_;
  }
  if (on_change != nullptr) (*on_change)(name);
}

void Catalog::count(const CatalogEntry& entry, int by) {
  if (!entry.wanted) return;
  wanted_ += static_cast<size_t>(by);
  if (entry.state == ModelState::kReady) served_ += static_cast<size_t>(by);
  if (!entry.reason.empty()) unavailable_revision_.fetch_add(1);
}

Catalog::EntryPtr Catalog::find(std::string_view name) const {
  const std::shared_lock lock(mutex_);
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : found->second;
}

bool Catalog::empty() const {
  const std::shared_lock lock(mutex_);
  return entries_.empty();
}

Catalog::Entries Catalog::snapshot() const {
  const std::shared_lock lock(mutex_);
  return entries_;
}

void Catalog::ask_for(std::string_view name) const {
  const std::shared_lock lock(mutex_);
  if (!entries_.contains(name)) return;
  const std::lock_guard asked_lock(asked_mutex_);
  if (asked_names_.emplace(name).second) asked_.emplace_back(name);
}

std::vector<std::string> Catalog::take_asked() {
  const std::lock_guard lock(asked_mutex_);
  asked_names_.clear();
  return std::exchange(asked_, {});
}

bool Catalog::ready() const {
  const std::shared_lock lock(mutex_);
  return ready_;
}

void Catalog::set_ready(bool ready) {
  const std::lock_guard lock(mutex_);
  ready_ = ready;
}

bool Catalog::can_serve(bool strict) const {
  const std::shared_lock lock(mutex_);
  if (!ready_) return false;
  return strict ? served_ == wanted_ : served_ > 0 || wanted_ == 0;
}

}  // namespace foliot
