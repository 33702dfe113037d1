// Graph: the input of a device's lowering, made by the compiler: operators in order
// over values with known types and shapes, for one batch size and one bucket.
#ifndef FOLIOT_ENGINE_DEVICE_GRAPH_H_
#define FOLIOT_ENGINE_DEVICE_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/device/operator.h"
#include "foundation/core/tensor.h"

namespace foliot {

using ValueIndex = uint32_t;
// An optional operator input that is left out.
inline constexpr ValueIndex kNoValue = ~ValueIndex{0};

struct Value {
  std::string name;
  DataType type = DataType::kFloat32;
  Shape shape;
  // Set if the value is a constant (weights): dense row-major bytes. Graphs of
  // one program that differ in batch size share the very same object, by which
  // a device knows that they are one.
  std::shared_ptr<const std::vector<std::byte>> constant;

  bool is_constant() const { return constant != nullptr; }
};

struct Node {
  OperatorKind kind;
  std::string name;                // the ONNX node's, for messages
  std::vector<ValueIndex> inputs;  // kNoValue where left out
  std::vector<ValueIndex> outputs;
  Attributes attributes;
  std::vector<PostOperation> post_operations;
};

struct Graph {
  uint32_t batch_size = 1;
  uint16_t bucket = 0;
  std::vector<Value> values;
  std::vector<Node> nodes;          // in an order in which they can run
  std::vector<ValueIndex> inputs;   // in ModelInfo::inputs order
  std::vector<ValueIndex> outputs;  // may name an input, a constant, or a value twice
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_GRAPH_H_
