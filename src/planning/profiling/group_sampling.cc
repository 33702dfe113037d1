#include "planning/profiling/group_sampling.h"

#include "foundation/base/check.h"

namespace foliot {
namespace {

// 1 to all of so many.
std::vector<bool> draw_some(uint64_t count, Random& random) {
  std::vector<bool> chosen(count);
  for (uint64_t left = 1 + random.below(count); left > 0;) {
    const uint64_t at = random.below(count);
    if (chosen[at]) continue;
    chosen[at] = true;
    --left;
  }
  return chosen;
}

}  // namespace

std::vector<OperatorRange> draw_ranges(std::span<const uint32_t> operators, Random& random) {
  const std::vector<bool> end = draw_some(operators.size(), random), begin = draw_some(operators.size(), random);
  std::vector<OperatorRange> ranges;
  for (size_t i = 0; i < operators.size(); ++i) {
    FOLIOT_CHECK(operators[i] > 0);
    OperatorRange& range = ranges.emplace_back();
    if (operators[i] < 3) continue;
    if (!begin[i]) range.first = 1 + static_cast<uint32_t>(random.below(operators[i] - 2));
    if (!end[i]) range.last = range.first + 1 + static_cast<uint32_t>(random.below(operators[i] - range.first - 1));
  }
  return ranges;
}

}  // namespace foliot
