#include "answer/personal/items/computed_items.h"

#include <algorithm>

#include "answer/personal/weights/cholesky.h"
#include "answer/personal/weights/user_weights.h"
#include "foundation/base/check.h"
#include "foundation/base/mutex.h"

namespace foliot {
namespace {

constexpr size_t kBlockRows = 64;

}  // namespace

ComputedItems::ComputedItems(size_t features, uint64_t checksum)
    : features_(features), width_(padded_rows(features)), checksum_(checksum) {
  FOLIOT_CHECK(features >= 1 && features <= kFeaturesMax);
}

std::optional<std::span<const float>> ComputedItems::features_of(uint64_t item) const {
  const ReaderLock lock(mutex_);
  float* const* const found = by_item_.find(item);
  if (found == nullptr) return std::nullopt;
  return std::span<const float>(*found, width_);
}

bool ComputedItems::copy(uint64_t item, std::span<float> features) const {
  const ReaderLock lock(mutex_);
  float* const* const found = by_item_.find(item);
  if (found != nullptr) std::copy_n(*found, width_, features.begin());
  return found != nullptr;
}

void ComputedItems::add(uint64_t item, std::span<const float> features) {
  FOLIOT_CHECK(features.size() == width_);
  const MutexLock lock(mutex_);
  if (by_item_.find(item) != nullptr) return;
  if (empty_rows_.empty()) {
    std::vector<float>& block = blocks_.emplace_back(kBlockRows * width_);
    for (size_t row = kBlockRows; row > 0; --row) empty_rows_.push_back(block.data() + (row - 1) * width_);
  }
  float* const row = empty_rows_.back();
  empty_rows_.pop_back();
  std::ranges::copy(features, row);
  by_item_.insert(item, row);
}

void ComputedItems::remove(uint64_t item) {
  const MutexLock lock(mutex_);
  float* const* const found = by_item_.find(item);
  if (found == nullptr) return;
  std::fill_n(*found, width_, 0.0F);
  empty_rows_.push_back(*found);
  by_item_.erase(item);
}

size_t ComputedItems::size() const {
  const ReaderLock lock(mutex_);
  return by_item_.size();
}

}  // namespace foliot
