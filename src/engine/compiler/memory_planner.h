// Memory planner: gives every tensor of a plan its place, so that nothing is
// decided when it runs. Tensors that are not alive at the same time share
// workspace.
#ifndef FOLIOT_ENGINE_COMPILER_MEMORY_PLANNER_H_
#define FOLIOT_ENGINE_COMPILER_MEMORY_PLANNER_H_

#include <cstdint>

#include "engine/device/plan.h"

namespace foliot {

// Sets the offsets of all tensors outside the weights, the places and offsets of
// aliases (weights included), and the sizes of the three blocks.
//
// REQUIRES: weights that are no aliases have their offsets; aliases end in a
// tensor of their own and lie within it; each output is a tensor of its own in
// Place::kOutput.
void plan_memory(Plan& plan);

// What no planner can go below: the largest sum of what is alive at once.
uint64_t workspace_bytes_min(const Plan& plan);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_MEMORY_PLANNER_H_
