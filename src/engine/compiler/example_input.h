// Example input: random values that a model can be run on to measure and check it, JPEGs where it
// decodes them, and text where it reads it.
#ifndef FOLIOT_ENGINE_COMPILER_EXAMPLE_INPUT_H_
#define FOLIOT_ENGINE_COMPILER_EXAMPLE_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/device/graph.h"
#include "foundation/base/random.h"
#include "foundation/core/tensor.h"

namespace foliot {

// What the values of an input have to be.
struct ExampleValues {
  // Integers stay below: the extent of the smallest table that they look something up in, or 2.
  uint64_t bound = 2;
  // Rows are JPEGs with at most so many pixels; 0: they are not.
  uint64_t jpeg_pixels_max = 0;
  // Rows are text that fills them.
  bool is_text = false;
};

// By the graph's inputs.
std::vector<ExampleValues> example_values(const Graph& graph);

// Words of lower-case letters, if it is text. Reals with mean 0 and deviation 1, integers in [0, bound), booleans; or
// one JPEG in all rows, which fills a row (engine/compiler/example_jpeg.h). `bytes` are those of so many rows.
void fill_random(Random& random, DataType type, const ExampleValues& values, uint32_t rows, std::span<std::byte> bytes);

// As fill_random() for one row, but of a kind that shows where rows meet: beside ordinary rows there are constant
// and sparse ones, and ones that are larger or smaller by decades, by `row` in turn.
void fill_contrary(Random& random, DataType type, const ExampleValues& values, size_t row, std::span<std::byte> bytes);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_EXAMPLE_INPUT_H_
