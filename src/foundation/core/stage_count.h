// StageCount: how many elements a row of a stage's outputs has, each of which other stages of the
// pipeline are visited for (foundation/core/pipeline_info.h): one number, in an output of its own.
#ifndef FOLIOT_FOUNDATION_CORE_STAGE_COUNT_H_
#define FOLIOT_FOUNDATION_CORE_STAGE_COUNT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "foundation/core/tensor.h"

namespace foliot {

struct StageCount {
  uint32_t output = 0;   // position in the outputs of the stage's model
  uint32_t at_most = 1;  // elements

  bool operator==(const StageCount&) const = default;
};

// The first element of this row of the output, as it stands there. No allocation. REQUIRES: it has one.
float count_in(DataType type, std::span<const std::byte> row);
// nullopt: it is no whole number from 0 to `at_most`.
std::optional<uint32_t> whole_count(float count, uint32_t at_most);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_STAGE_COUNT_H_
