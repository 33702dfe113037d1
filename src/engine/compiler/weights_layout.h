// Weights layout: the places of the constants of all plans in the program's weights.
#ifndef FOLIOT_ENGINE_COMPILER_WEIGHTS_LAYOUT_H_
#define FOLIOT_ENGINE_COMPILER_WEIGHTS_LAYOUT_H_

#include <cstddef>
#include <vector>

#include "engine/device/plan.h"

namespace foliot {

// Puts the constants that the plans use one behind the other, in the order in
// which they are first used, and sets the offsets of the tensors that name them.
// Pages stand side by side in the address space, so a constant may cross from
// one into the next, and no page has unused space but the last. Returns the
// weights, a multiple of 4096 bytes and at least that. Takes the constants out
// of `program`.
std::vector<std::byte> lay_out_weights(LoweredProgram& program);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_WEIGHTS_LAYOUT_H_
