// QuantizedProduct: a convolution or matrix product of quantised operands, read
// from a graph in which both are dequantised and multiplied in float32.
#ifndef FOLIOT_ENGINE_COMPILER_QUANTIZED_PRODUCT_H_
#define FOLIOT_ENGINE_COMPILER_QUANTIZED_PRODUCT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/compiler/graph_editor.h"

namespace foliot {

// A float32 value as the graph computes it: (codes - zero_point) * scale.
struct Quantized {
  ValueIndex codes = kNoValue;  // uint8, no constant
  double scale = 1;
  int64_t zero_point = 0;
};

// Nullopt: the value is no dequantised uint8.
std::optional<Quantized> read_quantized(const GraphEditor& editor, ValueIndex value);

// result[c] = scales[c] * (sum of codes * weights + bias[c]), before post-operations.
struct QuantizedProduct {
  NodeIndex node = kNoNode;
  ValueIndex codes = kNoValue;  // uint8
  Constant weights;             // int8, centred on zero
  std::vector<double> scales;   // per channel of the result
  std::vector<double> bias;     // the same; with what the zero point of `codes` takes away
  // What stands for zero in `codes`, where a convolution pads with it.
  int64_t padding = 0;
};

// Nullopt: the node is something else, or its weights do not fit int8.
std::optional<QuantizedProduct> read_quantized_product(const GraphEditor& editor, NodeIndex index);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_QUANTIZED_PRODUCT_H_
