#include "engine/device/conformance/case_graph_builder.h"

#include <string>

#include "foundation/base/check.h"

namespace foliot {

Array random_array(DataType type, const Shape& shape, Random& random, Range range) {
  Array array{.type = type, .shape = shape, .values = {}};
  const bool brain = type == DataType::kBfloat16;
  const bool floating = brain || type == DataType::kFloat32 || type == DataType::kFloat64;
  for (uint64_t i = 0; i < element_count(shape); ++i) {
    const double value = range.low + (range.high - range.low) * random.uniform();
    const auto whole = range.low + static_cast<double>(random.below(static_cast<uint64_t>(range.high - range.low) + 1));
    // Rounded, so that the reference sees exactly what the device sees.
    const double real = brain ? rounded_to_bfloat16(value) : static_cast<double>(static_cast<float>(value));
    array.values.push_back(floating ? real : whole);
  }
  return array;
}

ValueIndex CaseGraphBuilder::add(Value value) {
  if (value.name.empty()) value.name = "value " + std::to_string(graph_.values.size());
  graph_.values.push_back(std::move(value));
  return static_cast<ValueIndex>(graph_.values.size() - 1);
}

ValueIndex CaseGraphBuilder::input(const Shape& shape, DataType type) {
  const ValueIndex index = add({.name = {}, .type = type, .shape = shape, .constant = nullptr});
  graph_.inputs.push_back(index);
  return index;
}

ValueIndex CaseGraphBuilder::constant(const Array& array) {
  return add({.name = {},
              .type = array.type,
              .shape = array.shape,
              .constant = std::make_shared<const std::vector<std::byte>>(to_bytes(array))});
}

ValueIndex CaseGraphBuilder::constant(const Value& value) {
  FOLIOT_CHECK(value.is_constant());
  return add(value);
}

ValueIndex CaseGraphBuilder::node(OperatorKind kind, std::vector<ValueIndex> inputs, const Shape& shape,
                                  AttributeList attributes, DataType type, std::vector<PostOperation> post_operations) {
  const ValueIndex result = add({.name = {}, .type = type, .shape = shape, .constant = nullptr});
  Node node{.kind = kind,
            .name = "node " + std::to_string(graph_.nodes.size()),
            .inputs = std::move(inputs),
            .outputs = {result},
            .attributes = {},
            .post_operations = std::move(post_operations)};
  for (const auto& [name, value] : attributes) node.attributes.set(name, value);
  graph_.nodes.push_back(std::move(node));
  return result;
}

Graph decoding_graph(uint32_t batch_size, int64_t row_bytes) {
  CaseGraphBuilder builder(batch_size);
  const ValueIndex bytes = builder.input({batch_size, row_bytes}, DataType::kUint8);
  builder.output(builder.node(
      OperatorKind::kDecodeJpeg, {bytes}, {batch_size, 4, 4, 3},
      {{"fit", std::string("stretch")}, {"pad_value", int64_t{0}}, {"pixels_max", int64_t{1000}}}, DataType::kUint8));
  return builder.graph();
}

PostOperation activation(const char* function, double alpha, double beta) {
  return {.kind = PostOperation::Kind::kActivation,
          .function = parse_function(function).value(),
          .alpha = alpha,
          .beta = beta,
          .input = 0};
}

PostOperation combination(const char* function, uint32_t input) {
  return {.kind = PostOperation::Kind::kBinary,
          .function = parse_function(function).value(),
          .alpha = 0,
          .beta = 0,
          .input = input};
}

}  // namespace foliot
