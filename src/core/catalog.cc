#include "core/catalog.h"

#include <algorithm>

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
  std::lock_guard lock(mutex_);
  auto next = std::make_shared<Entries>(*entries_);
  (*next)[entry.name] = std::move(entry);
  entries_ = std::move(next);
}

void Catalog::remove(std::string_view name) {
  std::lock_guard lock(mutex_);
  auto next = std::make_shared<Entries>(*entries_);
  if (const auto found = next->find(name); found != next->end()) next->erase(found);
  entries_ = std::move(next);
}

std::shared_ptr<const Catalog::Entries> Catalog::snapshot() const {
  std::lock_guard lock(mutex_);
  return entries_;
}

bool Catalog::ready() const {
  std::lock_guard lock(mutex_);
  return complete_ && std::none_of(entries_->begin(), entries_->end(),
                                   [](const auto& entry) { return entry.second.state == ModelState::kLoading; });
}

void Catalog::set_complete() {
  std::lock_guard lock(mutex_);
  complete_ = true;
}

}  // namespace foliot
