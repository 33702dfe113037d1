#include "foundation/core/stage_count.h"

#include <cmath>
#include <limits>

#include "foundation/core/stage_condition.h"

namespace foliot {

// What only rounding makes a whole number is none.
float count_in(DataType type, std::span<const std::byte> row) {
  const double count = value_of({.value = StageCondition::Value::kElement, .element = 0}, type, row);
  const auto rounded = static_cast<float>(count);
  const bool became_whole = rounded == std::floor(rounded) && count != std::floor(count);
  return became_whole ? std::numeric_limits<float>::quiet_NaN() : rounded;
}

std::optional<uint32_t> whole_count(float count, uint32_t at_most) {
  if (!(count >= 0) || count > static_cast<float>(at_most) || count != std::floor(count)) return std::nullopt;
  return static_cast<uint32_t>(count);
}

}  // namespace foliot
