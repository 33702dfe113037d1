// Reference: the results of a graph, by naive loops in double precision. The truth that
// devices are held against; far too slow for anything else.
#ifndef FOLIOT_ENGINE_DEVICE_CONFORMANCE_REFERENCE_H_
#define FOLIOT_ENGINE_DEVICE_CONFORMANCE_REFERENCE_H_

#include <cstddef>
#include <span>
#include <vector>

#include "engine/device/graph.h"
#include "foundation/core/tensor.h"

namespace foliot {

// A tensor's values, of whatever type, dense row-major.
struct Array {
  DataType type = DataType::kFloat32;
  Shape shape;
  std::vector<double> values;
};

// The nearest bfloat16, of two equally near the even one.
double rounded_to_bfloat16(double value);

// Between arrays and the bytes that devices see. float16 is not supported.
std::vector<std::byte> to_bytes(const Array& array);
Array from_bytes(DataType type, const Shape& shape, std::span<const std::byte> bytes);

// The graph's outputs for these inputs. REQUIRES: the graph is well-formed.
std::vector<Array> evaluate(const Graph& graph, std::span<const Array> inputs);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CONFORMANCE_REFERENCE_H_
