// ExecPart: which part of a batch an EXEC computes, on which lanes of its device, and in
// which context.
#ifndef FOLIOT_CORE_EXEC_PART_H_
#define FOLIOT_CORE_EXEC_PART_H_

#include <cstdint>

#include "core/lanes.h"

namespace foliot {

// Operators [first, last) of a plan.
struct OperatorRange {
  uint32_t first = 0;
  uint32_t last = ~uint32_t{0};  // capped to the plan's length
};

// Names a place for the intermediates of one unfinished batch.
using ContextIndex = uint32_t;

struct ExecPart {
  OperatorRange range{};
  LaneInterval lanes{};
  ContextIndex context = 0;
};

}  // namespace foliot

#endif  // FOLIOT_CORE_EXEC_PART_H_
