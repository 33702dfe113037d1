#include "answer/personal/items/known_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {

ItemInput KnownItems::find(uint64_t item) const {
  const Entry* const entry = entries_.find(item);
  return entry == nullptr || entry->place == kNone ? nullptr : entry->input;
}

Status KnownItems::claim(uint64_t item, const ItemInput& input) {
  const Entry* const entry = entries_.find(item);
  const ItemInput known = entry == nullptr ? nullptr : entry->input;
  if (input == nullptr && find(item) == nullptr) {
    return Status::not_found(fmt::format("item {} is unknown: it was not observed yet; send its input", item));
  }
  if (known != nullptr && input != nullptr && *known != *input) {
    return Status::invalid_argument(
        fmt::format("item {} was observed with another input before; give another number to this one", item));
  }
  if (known == nullptr && bytes_ + input->size() > bytes_max_) {
    return Status::resource_exhausted(
        fmt::format("the inputs of observed items have {} bytes, and {} more are over the limit of {}; raise "
                    "limits.inputs of personal.toml",
                    bytes_, input->size(), bytes_max_));
  }
  Entry& claimed = entries_[item];
  if (known == nullptr) {
    bytes_ += input->size();
    claimed.input = input;
  }
  ++claimed.claims;
  return Status();
}

void KnownItems::keep(uint64_t item, ItemInput input) {
  Entry& entry = entries_[item];
  bytes_ += input->size() - (entry.input == nullptr ? 0 : entry.input->size());
  entry.input = std::move(input);
  if (entry.place != kNone) return;
  if (empty_places_.empty()) {
    empty_places_.push_back(static_cast<uint32_t>(places_.size()));
    places_.emplace_back();
  }
  entry.place = empty_places_.back();
  empty_places_.pop_back();
  places_[entry.place] = item;
}

void KnownItems::use(uint64_t item) { ++entries_[item].uses; }

bool KnownItems::release(uint64_t item) {
  Entry* const entry = entries_.find(item);
  FOLIOT_CHECK(entry != nullptr && entry->claims > 0);
  --entry->claims;
  return settle(item);
}

bool KnownItems::stop_using(uint64_t item) {
  Entry* const entry = entries_.find(item);
  FOLIOT_CHECK(entry != nullptr && entry->uses > 0);
  --entry->uses;
  return settle(item);
}

bool KnownItems::settle(uint64_t item) {
  Entry& entry = *entries_.find(item);
  if (entry.claims > 0) return false;
  const bool was_kept = entry.place != kNone;
  if (was_kept && entry.uses > 0) return false;
  if (entry.input != nullptr) bytes_ -= entry.input->size();
  entry.input = nullptr;
  if (was_kept) {
    places_[entry.place].reset();
    empty_places_.push_back(std::exchange(entry.place, kNone));
  }
  if (entry.uses == 0) entries_.erase(item);
  return was_kept;
}

void KnownItems::remove_unused() {
  for (size_t place = 0; place < places_.size(); ++place) {
    if (places_[place]) settle(*places_[place]);
  }
}

std::optional<KnownItem> KnownItems::at(size_t place) const {
  if (!places_[place]) return std::nullopt;
  return KnownItem{*places_[place], entries_.find(*places_[place])->input};
}

std::vector<KnownItem> KnownItems::all() const {
  std::vector<KnownItem> all;
  entries_.for_each([&](uint64_t item, const Entry& entry) {
    if (entry.input != nullptr) all.push_back({item, entry.input});
  });
  std::ranges::sort(all, {}, &KnownItem::item);
  return all;
}

}  // namespace foliot
