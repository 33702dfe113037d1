// ExecPart: which part of a batch an EXEC computes, on which lanes of its device, and in
// which context.
#ifndef FOLIOT_FOUNDATION_CORE_EXEC_PART_H_
#define FOLIOT_FOUNDATION_CORE_EXEC_PART_H_

#include <cstdint>

#include "foundation/core/lanes.h"

namespace foliot {

// Operators [first, last) of a plan.
struct OperatorRange {
  static constexpr uint32_t kEnd = ~uint32_t{0};

  uint32_t first = 0;
  uint32_t last = kEnd;  // kEnd: the end of the plan, whatever its length

  bool begins() const { return first == 0; }
  bool ends() const { return last == kEnd; }
  bool whole() const { return begins() && ends(); }
  bool operator==(const OperatorRange&) const = default;
};

// Names a place for the intermediates of one unfinished batch.
using ContextIndex = uint32_t;

inline constexpr uint32_t kContextsMax = 64;  // of one device

struct ExecPart {
  OperatorRange range{};
  LaneInterval lanes{};
  ContextIndex context = 0;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_EXEC_PART_H_
