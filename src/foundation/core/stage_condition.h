// StageCondition: a question about one row of a stage's outputs, on which depends whether a
// pipeline's run visits other stages (foundation/core/pipeline_info.h).
#ifndef FOLIOT_FOUNDATION_CORE_STAGE_CONDITION_H_
#define FOLIOT_FOUNDATION_CORE_STAGE_CONDITION_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "foundation/core/tensor.h"

namespace foliot {

// Of one row, which conditions of a stage hold: bit i is condition i.
using ConditionSet = uint8_t;
inline constexpr uint32_t kConditionsMax = std::numeric_limits<ConditionSet>::digits;

// A comparison with a number that is taken from one row of one output. Not a number: false,
// but for kNotEqual.
struct StageCondition {
  enum class Value : uint8_t {
    kMaximum,  // of all elements that are numbers
    kElement,  // the one at `element`
    kArgmax,   // the position of the first maximum
  };
  enum class Comparison : uint8_t { kBelow, kAtMost, kAbove, kAtLeast, kEqual, kNotEqual };

  uint32_t output = 0;  // position in the outputs of the stage's model
  Value value = Value::kMaximum;
  uint64_t element = 0;  // row-major
  Comparison comparison = Comparison::kBelow;
  double limit = 0;
};

// What it compares. As holds().
double value_of(const StageCondition& condition, DataType type, std::span<const std::byte> row);
// Whether it holds for this row of its output. No allocation. REQUIRES: the row has elements
// of this type, and the one that is asked for.
bool holds(const StageCondition& condition, DataType type, std::span<const std::byte> row);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_STAGE_CONDITION_H_
