#include "engine/compiler/output_extents.h"

#include <algorithm>

namespace foliot {
namespace {

// Sizes from the largest downwards to 1, at growing distances.
std::vector<int64_t> sizes_below(int64_t largest) {
  std::vector<int64_t> sizes;
  for (int64_t distance = 1; largest - distance >= 1; distance *= 2) sizes.push_back(largest - distance);
  if (!sizes.empty() && sizes.back() != 1) sizes.push_back(1);
  return sizes;
}

}  // namespace

int64_t OutputExtents::extent(const std::string& dimension, int64_t size, size_t output, size_t axis) {
  const auto [found, is_new] = known_.try_emplace({dimension, size});
  if (is_new) {
    Sizes sizes = largest_;
    sizes.at(dimension) = size;
    found->second = shapes_(sizes);
  }
  const auto& shapes = found->second;
  return shapes && axis < (*shapes)[output].size() ? (*shapes)[output][axis] : -1;
}

ExtentRule OutputExtents::find(size_t output, size_t axis) {
  ExtentRule rule{.is_fixed = true};
  for (const auto& [name, largest] : largest_) {
    const Extent at = [&, &dimension = name](int64_t size) { return extent(dimension, size, output, axis); };
    const std::vector<int64_t> sizes = sizes_below(largest);
    const bool matters =
        std::ranges::any_of(sizes, [&, top = largest](int64_t size) { return at(size) != -1 && at(size) != at(top); });
    if (!matters) continue;
    if (!rule.is_fixed) return {};  // a second one
    rule.is_fixed = false;
    rule.linear = fit(largest, at);
    if (!rule.linear) return {};
    rule.linear->dimension = name;
    const bool holds =
        std::ranges::all_of(sizes, [&](int64_t size) { return at(size) == -1 || at(size) == rule.linear->of(size); });
    if (!holds) return {};
  }
  return rule;
}

// One that holds at `largest` and next to it.
std::optional<LinearExtent> OutputExtents::fit(int64_t largest, const Extent& extent) {
  const int64_t top = extent(largest);
  const std::vector<int64_t> sizes = sizes_below(largest);
  const auto nearest = std::ranges::find_if(sizes, [&](int64_t size) { return extent(size) != -1; });
  const int64_t distance = largest - *nearest;
  const int64_t slope = (top - extent(*nearest)) / distance;
  const auto is_whole = [&](int64_t size) {
    return extent(size) == -1 || extent(size) == top - slope * (largest - size);
  };
  if (slope >= 1 && std::ranges::all_of(sizes, is_whole)) {
    return LinearExtent{.dimension = {}, .multiplier = slope, .offset = top - slope * largest, .divisor = 1};
  }
  // Otherwise it grows by one with every so many sizes: the last ones before two such
  // steps are looked for.
  int64_t ends[2] = {};
  for (int64_t step = 0; step < 2; ++step) {
    const auto is_before = [&](int64_t size) { return extent(size) != -1 && extent(size) < top - step; };
    const auto lower = std::ranges::find_if(sizes, is_before);
    if (lower == sizes.end()) return std::nullopt;
    int64_t before = *lower;
    int64_t after = largest;
    while (after - before > 1) {
      const int64_t middle = before + (after - before) / 2;
      if (extent(middle) == -1) return std::nullopt;
      (is_before(middle) ? before : after) = middle;
    }
    ends[step] = before;
  }
  const int64_t divisor = ends[0] - ends[1];
  if (divisor < 1) return std::nullopt;
  return LinearExtent{.dimension = {}, .multiplier = 1, .offset = divisor * top - ends[0] - 1, .divisor = divisor};
}

}  // namespace foliot
