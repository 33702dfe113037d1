// NarrowingCheck: the difference between a program in lower precision than float32 and
// the same model in float32.
#ifndef FOLIOT_ENGINE_COMPILER_NARROWING_CHECK_H_
#define FOLIOT_ENGINE_COMPILER_NARROWING_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/compiler/constant.h"
#include "engine/compiler/example_input.h"
#include "engine/compiler/program_runner.h"
#include "engine/device/device.h"
#include "engine/device/graph.h"
#include "foundation/base/status.h"

namespace foliot {

// The outputs of a plan.
using Example = Constant;

// A graph's outputs for random inputs, the same for graphs with the same inputs.
// `device` must be fresh, and is used up. `values`: see example_input.h.
Result<std::vector<Example>> run_once(const Graph& graph, Device& device, std::span<const ExampleValues> values);
// The same of the first plan of a program.
Result<std::vector<Example>> run_example(ProgramRunner& runner, const Plan& plan,
                                         std::span<const ExampleValues> values);

// The largest difference, as a share of the largest absolute value of its output.
// Of floating-point outputs alone.
double largest_difference(std::span<const Example> expected, std::span<const Example> actual);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_NARROWING_CHECK_H_
