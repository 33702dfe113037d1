#include "control/policies/adaptive_batching/batch_limit.h"

#include <algorithm>

namespace foliot::adaptive_batching {

uint32_t BatchLimit::batch_index(std::span<const uint32_t> batch_sizes) const {
  uint32_t index = 0;
  while (index + 1 < batch_sizes.size() && batch_sizes[index + 1] <= rows_) ++index;
  return index;
}

void BatchLimit::record(uint32_t batch_size, Duration measured, Duration objective,
                        std::span<const uint32_t> batch_sizes) {
  const uint32_t index = batch_index(batch_sizes);
  const double largest = batch_sizes.back();
  if (method_ == Method::kQuantileRegression) {
    line_.add(batch_size, measured);
    // Not beyond the size above the one that was tried: the line knows nothing of that.
    const double tried = batch_sizes[std::min<size_t>(index + 1, batch_sizes.size() - 1)];
    rows_ = std::min({line_.batch_within(objective), tried, largest});
  } else if (measured > objective) {
    rows_ = std::max(1.0, rows_ * 0.9);
  } else if (batch_size == batch_sizes[index]) {
    // Smaller batches say nothing about whether a larger one would be in time.
    rows_ = std::min(rows_ + 1, largest);
  }
}

}  // namespace foliot::adaptive_batching
