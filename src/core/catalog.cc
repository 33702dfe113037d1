#include "core/catalog.h"

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
  change([&](Entries& entries) { entries[entry.name] = std::move(entry); });
}

void Catalog::remove(std::string_view name) {
  change([&](Entries& entries) {
    if (const auto found = entries.find(name); found != entries.end()) entries.erase(found);
  });
}

void Catalog::change(const std::function<void(Entries&)>& by) {
  std::lock_guard writer(writers_);
  auto next = std::make_shared<Entries>(*snapshot());
  by(*next);
  std::shared_ptr<const Entries> last = std::move(next);
  {
    std::lock_guard lock(mutex_);
    entries_.swap(last);
  }
  // What nobody reads any more is taken apart here, outside the readers' lock.
}

std::shared_ptr<const Catalog::Entries> Catalog::snapshot() const {
  std::lock_guard lock(mutex_);
  return entries_;
}

bool Catalog::ready() const {
  std::lock_guard lock(mutex_);
  return ready_;
}

void Catalog::set_ready(bool ready) {
  std::lock_guard lock(mutex_);
  ready_ = ready;
}

}  // namespace foliot
