#include "engine/device/cpu/fusion.h"

#include <fmt/format.h>

namespace foliot {

bool convolves(OperatorKind kind) {
  return kind == OperatorKind::kConvolution || kind == OperatorKind::kConvolutionTranspose;
}

std::optional<Fusion> plan_fusion(const Node& node, const GraphLowering& lowering, const Shape& result, Fusion fusion) {
  const ValueIndex output = node.outputs[0];
  const Shape& shape = lowering.shape(output);
  // The others get an operator of their own; PreparedProgram notices which NaN these lose.
  const bool may_lose = convolves(node.kind) || lowering.computes_narrow(node);
  for (const PostOperation& operation : node.post_operations) {
    if (!may_lose && (loses_nan(operation.function) || loses_small_results(operation.function))) return std::nullopt;
    PostOperand operand;
    if (operation.kind == PostOperation::Kind::kBinary) {
      const ValueIndex value = node.inputs.at(operation.input);
      const Shape& extent = lowering.shape(value);
      const bool whole = element_count(extent) == element_count(shape);
      if (!whole && !lowering.is_dense(value)) return std::nullopt;
      const std::optional<Shape> seen = operand_shape(extent, shape, result);
      if (!seen) return std::nullopt;
      const DataType type = lowering.value(output).type, operand_type = lowering.value(value).type;
      operand.descriptor = lowering.is_dense(value) ? dense_descriptor(operand_type, *seen) : lowering.layout(value);
      if (whole) {
        const Descriptor destination = with_type(operand.descriptor, type);
        if (fusion.destination && *fusion.destination != destination) return std::nullopt;
        fusion.destination = destination;
        // Behind another post-operation, oneDNN's fast kernels have no sum in place.
        operand.in_place = operation.function == Function::kAdd && &operation == &node.post_operations.front() &&
                           operand_type == type && lowering.may_overwrite(node, value, output);
        if (operand.in_place) fusion.overwritten = value;
      }
    }
    if (!fusion.attributes.append(operation, operand)) return std::nullopt;
  }
  return fusion;
}

TensorIndex fused_result(const Node& node, GraphLowering& lowering, const Fusion& fusion, const Descriptor& layout) {
  if (fusion.overwritten == kNoValue) return lowering.result(node.outputs[0], layout);
  return lowering.result_over(node.outputs[0], lowering.present(fusion.overwritten), layout_bytes(layout),
                              layout.get_size());
}

void append_post_operations(const OperatorView& view, const Shape& result, PrimitiveAttributes& attributes) {
  for (const PostOperation& operation : view.operation().post_operations) {
    PostOperand operand;
    if (operation.kind == PostOperation::Kind::kBinary) {
      const std::optional<Shape> seen = operand_shape(view.input(operation.input).shape, view.output().shape, result);
      if (!seen) throw dnnl::error(dnnl_invalid_arguments, "a post-operation's operand does not fit its result");
      operand.descriptor = view.descriptor(view.input_index(operation.input), *seen);
      operand.in_place = view.same_storage(view.input_index(operation.input), view.output_index());
    }
    if (!attributes.append(operation, operand))
      throw dnnl::error(dnnl_unimplemented, "oneDNN has no such post-operation");
  }
}

Status require_products(const Node& node, const GraphLowering& lowering) {
  const auto type = [&](ValueIndex value) { return lowering.value(value).type; };
  const DataType x = type(node.inputs[0]), w = type(node.inputs[1]), y = type(node.outputs[0]);
  const bool whole = x == DataType::kUint8 && w == DataType::kInt8 && (y == x || y == DataType::kFloat32);
  const bool floating =
      x == w && (x == DataType::kFloat32 || x == DataType::kBfloat16) && (y == x || y == DataType::kFloat32);
  if (!whole && !floating)
    return Status::unimplemented(
        fmt::format("does not multiply {} by {} into {}; cast them before", to_string(x), to_string(w), to_string(y)));
  for (size_t i = 2; i < node.inputs.size(); ++i) {
    if (!GraphLowering::has(node, i)) continue;
    const DataType operand = type(node.inputs[i]);
    if (operand != DataType::kFloat32 && operand != DataType::kBfloat16 && operand != DataType::kUint8)
      return Status::unimplemented(
          fmt::format("'{}' is {}; cast it before", lowering.value(node.inputs[i]).name, to_string(operand)));
  }
  return Status();
}

Status require_float32(const Node& node, const GraphLowering& lowering) {
  for (const std::vector<ValueIndex>* values : {&node.inputs, &node.outputs})
    for (ValueIndex value : *values)
      if (value != kNoValue && lowering.value(value).type != DataType::kFloat32)
        return Status::unimplemented(fmt::format("works on FP32 only, and '{}' is {}; cast it before",
                                                 lowering.value(value).name, to_string(lowering.value(value).type)));
  return Status();
}

}  // namespace foliot
