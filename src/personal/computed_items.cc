#include "personal/computed_items.h"

#include <mutex>

#include "base/check.h"
#include "personal/cholesky.h"
#include "personal/user_weights.h"

namespace foliot {
namespace {

constexpr size_t kBlockRows = 64;

}  // namespace

ComputedItems::ComputedItems(size_t features, uint64_t checksum)
    : features_(features), width_(padded_rows(features)), checksum_(checksum) {
  FOLIOT_CHECK(features >= 1 && features <= kFeaturesMax);
}

std::optional<std::span<const float>> ComputedItems::features_of(uint64_t item) const {
  const std::shared_lock lock(mutex_);
  const float* const* const found = by_item_.find(item);
  return found == nullptr ? std::nullopt : std::optional(std::span(*found, width_));
}

void ComputedItems::add(uint64_t item, std::span<const float> features) {
  FOLIOT_CHECK(features.size() == width_);
  const std::unique_lock lock(mutex_);
  if (by_item_.find(item) != nullptr) return;
  if (blocks_.empty() || blocks_.back().size() == kBlockRows * width_) {
    blocks_.emplace_back().reserve(kBlockRows * width_);
  }
  std::vector<float>& block = blocks_.back();
  block.insert(block.end(), features.begin(), features.end());
  by_item_.insert(item, block.data() + block.size() - width_);
}

size_t ComputedItems::size() const {
  const std::shared_lock lock(mutex_);
  return by_item_.size();
}

}  // namespace foliot
