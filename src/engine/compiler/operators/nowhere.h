#ifndef FOLIOT_ENGINE_COMPILER_OPERATORS_NOWHERE_H_
#define FOLIOT_ENGINE_COMPILER_OPERATORS_NOWHERE_H_

#include <cstdint>

namespace foliot {

// The position that GatherND and ScatterND are given for an index out of range: so far below zero that it stays there
// whatever is added for the rows before, and the operator that uses it refuses the row.
inline constexpr int64_t kNowhere = -9'000'000'000'000'000;

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_OPERATORS_NOWHERE_H_
