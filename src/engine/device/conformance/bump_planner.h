// BumpPlanner: gives every tensor of a lowered program a place of its own. What
// the compiler's memory planner does well, done simply, for tests of devices.
#ifndef FOLIOT_ENGINE_DEVICE_CONFORMANCE_BUMP_PLANNER_H_
#define FOLIOT_ENGINE_DEVICE_CONFORMANCE_BUMP_PLANNER_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/device/device.h"

namespace foliot {

// Assigns all offsets and sizes of the plans and returns the weights.
std::vector<std::byte> assign_offsets(LoweredProgram& program);

// Weights held in memory.
std::shared_ptr<WeightsSource> memory_weights(std::vector<std::byte> bytes);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CONFORMANCE_BUMP_PLANNER_H_
