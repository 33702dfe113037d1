#include "personal/known_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace foliot {

ItemInput KnownItems::find(uint64_t item) const {
  const size_t* const place = by_item_.find(item);
  return place == nullptr ? nullptr : kept_[*place].input;
}

Status KnownItems::claim(uint64_t item, const ItemInput& input) {
  const ItemInput kept = find(item);
  Claim* const claimed = claims_.find(item);
  const ItemInput known = kept != nullptr ? kept : claimed != nullptr ? claimed->input : nullptr;
  if (known != nullptr && *known != *input) {
    return Status::invalid_argument(
        fmt::format("item {} was observed with another input before; give another number to this one", item));
  }
  if (known == nullptr && bytes_ + input->size() > bytes_max_) {
    return Status::resource_exhausted(
        fmt::format("the inputs of observed items have {} bytes, and {} more are over the limit of {}; raise "
                    "limits.inputs of personal.toml",
                    bytes_, input->size(), bytes_max_));
  }
  if (known == nullptr) bytes_ += input->size();
  Claim& claim = claims_[item];
  claim.input = kept != nullptr ? kept : claim.count > 0 ? claim.input : input;
  ++claim.count;
  return Status();
}

void KnownItems::release(uint64_t item) {
  Claim* const claim = claims_.find(item);
  FOLIOT_CHECK(claim != nullptr);
  if (--claim->count > 0) return;
  if (by_item_.find(item) == nullptr) bytes_ -= claim->input->size();
  claims_.erase(item);
}

void KnownItems::keep(uint64_t item, ItemInput input) {
  if (!by_item_.insert(item, kept_.size())) return;
  if (claims_.find(item) == nullptr) bytes_ += input->size();
  kept_.push_back({item, std::move(input)});
}

std::vector<KnownItem> KnownItems::all() const {
  std::vector<KnownItem> all = kept_;
  claims_.for_each([&](uint64_t item, const Claim& claim) {
    if (by_item_.find(item) == nullptr) all.push_back({item, claim.input});
  });
  std::ranges::sort(all, {}, &KnownItem::item);
  return all;
}

}  // namespace foliot
