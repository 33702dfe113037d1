#include "engine/device/vulkan/walk.h"

#include <fmt/format.h>

#include <algorithm>

namespace foliot {

std::vector<int64_t> row_major_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

std::vector<int64_t> broadcast_strides(const Shape& from, const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 0);
  const std::vector<int64_t> dense = row_major_strides(from);
  const size_t skip = shape.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d)
    if (from[d] != 1) strides[d + skip] = dense[d];
  return strides;
}

bool broadcasts_to(const Shape& from, const Shape& shape) {
  if (from.size() > shape.size()) return false;
  const size_t skip = shape.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d)
    if (from[d] != 1 && from[d] != shape[d + skip]) return false;
  return true;
}

Result<Walk> merged_walk(const Shape& extents, const std::vector<std::vector<int64_t>>& strides, size_t rank_max) {
  Walk walk{{}, std::vector<std::vector<int64_t>>(strides.size())};
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == 1) continue;
    bool merges = !walk.extents.empty();
    for (size_t i = 0; i < strides.size() && merges; ++i) merges = walk.strides[i].back() == strides[i][d] * extents[d];
    if (merges) {
      walk.extents.back() *= extents[d];
      for (size_t i = 0; i < strides.size(); ++i) walk.strides[i].back() = strides[i][d];
      continue;
    }
    walk.extents.push_back(extents[d]);
    for (size_t i = 0; i < strides.size(); ++i) walk.strides[i].push_back(strides[i][d]);
  }
  if (walk.extents.empty()) {
    walk.extents.push_back(1);
    for (std::vector<int64_t>& of : walk.strides) of.push_back(0);
  }
  if (walk.extents.size() > rank_max) {
    return Status::unimplemented(
        fmt::format("it has {} dimensions that cannot be merged, and {} are possible", walk.extents.size(), rank_max));
  }
  return walk;
}

}  // namespace foliot
