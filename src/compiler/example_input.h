// Example input: random values that a model can be run on to measure and check it.
#ifndef FOLIOT_COMPILER_EXAMPLE_INPUT_H_
#define FOLIOT_COMPILER_EXAMPLE_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "core/tensor.h"
#include "device/graph.h"

namespace foliot {

// For each input of the graph, the number below which its integers must stay:
// the extent of the smallest table that they look something up in, or 2.
std::vector<uint64_t> index_bounds(const Graph& graph);

// Reals with mean 0 and deviation 1, integers in [0, bound), booleans.
void fill_random(Random& random, DataType type, uint64_t bound, std::span<std::byte> bytes);

}  // namespace foliot

#endif  // FOLIOT_COMPILER_EXAMPLE_INPUT_H_
