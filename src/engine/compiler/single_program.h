// SingleProgram: one graph lowered by itself, to be run while a model is compiled.
#ifndef FOLIOT_ENGINE_COMPILER_SINGLE_PROGRAM_H_
#define FOLIOT_ENGINE_COMPILER_SINGLE_PROGRAM_H_

#include <cstddef>
#include <vector>

#include "engine/device/device.h"
#include "engine/device/graph.h"
#include "engine/program/program.h"
#include "foundation/base/status.h"

namespace foliot {

struct SingleProgram {
  Program program;  // one plan, in the first layout that the device proposes
  std::vector<std::byte> weights;
};

// Errors: those of Device::lower().
Result<SingleProgram> lower_single(const Graph& graph, Device& device);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_SINGLE_PROGRAM_H_
