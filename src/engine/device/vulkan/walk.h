// Walk: several tensors walked through at a time, each with strides of its own in elements (0 where it broadcasts).
// Dimensions are merged where all of them allow it.
#ifndef FOLIOT_ENGINE_DEVICE_VULKAN_WALK_H_
#define FOLIOT_ENGINE_DEVICE_VULKAN_WALK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/core/tensor.h"

namespace foliot {

struct Walk {
  std::vector<int64_t> extents;               // at least one
  std::vector<std::vector<int64_t>> strides;  // by tensor, as many each
};

std::vector<int64_t> row_major_strides(const Shape& shape);
// Of a dense tensor that broadcasts to `shape` as in numpy. REQUIRES: it does.
std::vector<int64_t> broadcast_strides(const Shape& from, const Shape& shape);
bool broadcasts_to(const Shape& from, const Shape& shape);

// Errors: kUnimplemented if more than `rank_max` dimensions are left. REQUIRES: each has as many strides as extents.
Result<Walk> merged_walk(const Shape& extents, const std::vector<std::vector<int64_t>>& strides, size_t rank_max);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_VULKAN_WALK_H_
