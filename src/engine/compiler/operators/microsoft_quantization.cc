// What onnxruntime's quantizers write: operators between codes, as the real operator between
// a dequantisation and a quantisation, which passes fuse where they can.
#include <fmt/format.h>

#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/convolution.h"
#include "engine/compiler/operators/onnx_operator.h"
#include "engine/compiler/operators/quantization.h"

namespace foliot {
namespace {

// The operand that begins at input `first`: codes, scale and zero point.
ValueIndex real_operand(NodeTranslation& node, Composer& c, size_t first, int64_t axis = 0) {
  return dequantize(
      node, c, {.codes = node.input(first), .scale = node.input(first + 1), .zero_point = node.input(first + 2)}, axis);
}

// Sets the result, whose scale is input `scale`, its zero point following, or 0 of the type
// of input 0.
Status finish_quantized(NodeTranslation& node, Composer& c, ValueIndex y, size_t scale) {
  if (!node.has_input(scale)) return Status::invalid_argument(fmt::format("input {} is missing", scale));
  const ValueIndex zero_point = node.has_input(scale + 1) ? node.input(scale + 1) : c.scalar(node.value(0).type, 0);
  return c.finish(node, quantize(node, c, y, node.input(scale), zero_point));
}

Status quantized_binary(NodeTranslation& node) {
  const Function function = node.type() == "QLinearAdd" ? Function::kAdd : Function::kMul;
  for (const size_t i : {3, 4}) {
    if (!node.has_input(i)) return Status::invalid_argument(fmt::format("input {} is missing", i));
  }
  Composer c(node.builder());
  const ValueIndex a = real_operand(node, c, 0), b = real_operand(node, c, 3);
  return finish_quantized(node, c, c.binary(function, a, b), 6);
}

Status quantized_activation(NodeTranslation& node) {
  Composer c(node.builder());
  const ValueIndex x = real_operand(node, c, 0);
  const ValueIndex y = node.type() == "QLinearSigmoid" ? c.unary(Function::kSigmoid, x)
                                                       : c.unary(Function::kLeakyRelu, x, node.real("alpha", 0.01));
  return finish_quantized(node, c, y, 3);
}

Status quantized_pool(NodeTranslation& node) {
  FOLIOT_RETURN_IF_ERROR(node.require("channels_last", 0));
  Composer c(node.builder());
  const ValueIndex x = real_operand(node, c, 0);
  FOLIOT_RETURN_IF_ERROR(c.status());
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex y, average_pool(node, x, node.type() == "QLinearGlobalAveragePool"));
  return finish_quantized(node, c, y, 3);
}

// Before opset 13, which attribute 'opset' names, dimensions from `axis` on were one.
Status quantized_softmax(NodeTranslation& node) {
  const bool flattens = node.integer("opset", 13) < 13;
  FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(node.integer("axis", -1), node.rank(0)));
  if (flattens && axis != node.rank(0) - 1) {
    return Status::unimplemented(
        fmt::format("attribute 'axis' is {}, and before opset 13 only the last dimension is "
                    "supported",
                    axis));
  }
  Composer c(node.builder());
  return finish_quantized(node, c, c.softmax(real_operand(node, c, 0), axis), 3);
}

Status quantized_concat(NodeTranslation& node) {
  if (node.input_count() < 5 || node.input_count() % 3 != 2) {
    return Status::invalid_argument(
        fmt::format("it has {} inputs, two and then three for each operand are needed", node.input_count()));
  }
  Composer c(node.builder());
  std::vector<ValueIndex> parts;
  for (size_t i = 2; i < node.input_count(); i += 3) {
    if (!node.has_input(i) || !node.has_input(i + 1))
      return Status::invalid_argument(fmt::format("input {} is missing", i));
    parts.push_back(real_operand(node, c, i));
  }
  FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(node.integer("axis", 0), node.rank(2)));
  return finish_quantized(node, c, c.concat(std::move(parts), axis), 0);
}

Status quantized_where(NodeTranslation& node) {
  Composer c(node.builder());
  return finish_quantized(node, c, c.where(node.input(0), real_operand(node, c, 1), real_operand(node, c, 4)), 7);
}

// alpha * A' * B' + C, C being integers of the scale of the product.
Status quantized_general_product(NodeTranslation& node) {
  if (node.rank(0) != 2 || node.rank(3) != 2) return Status::invalid_argument("operands are no matrices");
  const bool transpose_a = node.integer("transA", 0) != 0, transpose_b = node.integer("transB", 0) != 0;
  const double alpha = node.real("alpha", 1);
  Composer c(node.builder());
  const ValueIndex a = real_operand(node, c, 0), b = real_operand(node, c, 3, transpose_b ? 0 : 1);
  ValueIndex y = c.matmul(a, b, transpose_a, transpose_b, alpha);
  if (node.has_input(6)) {
    const ValueIndex scale = c.linear(c.mul(c.reshape(node.input(1), {}), node.input(4)), alpha);
    y = c.add(y, c.mul(c.cast(node.input(6), DataType::kFloat32), scale));
  }
  return node.has_input(7) ? finish_quantized(node, c, y, 7) : c.finish(node, y);
}

Status check_operands(const NodeTranslation& node) {
  if (node.rank(0) >= 2 && node.rank(1) >= 2) return {};
  return Status::unimplemented(
      fmt::format("{} and {} are not matrices", to_string(node.shape(0)), to_string(node.shape(1))));
}

ValueIndex with_bias(NodeTranslation& node, Composer& c, ValueIndex y, size_t bias) {
  return node.has_input(bias) ? c.add(y, node.input(bias)) : y;
}

// Codes of the first operand are those that its range asks for.
Status dynamic_product(NodeTranslation& node) {
  FOLIOT_RETURN_IF_ERROR(check_operands(node));
  Composer c(node.builder());
  const ValueIndex a = dequantize(node, c, quantize_dynamically(c, node.input(0)));
  const ValueIndex b = real_operand(node, c, 1, node.rank(1) - 1);
  return c.finish(node, with_bias(node, c, c.matmul(a, b), 4));
}

Status integer_product_to_real(NodeTranslation& node) {
  FOLIOT_RETURN_IF_ERROR(check_operands(node));
  Composer c(node.builder());
  const ValueIndex a =
      dequantize(node, c, {.codes = node.input(0), .scale = node.input(2), .zero_point = node.input(4)});
  const ValueIndex b = dequantize(
      node, c, {.codes = node.input(1), .scale = node.input(3), .zero_point = node.input(5)}, node.rank(1) - 1);
  return c.finish(node, with_bias(node, c, c.matmul(a, b), 6));
}

constexpr OnnxOperator kMicrosoftQuantizationOperators[] = {
    {"QLinearAdd", 2, 8, quantized_binary},           {"QLinearMul", 2, 8, quantized_binary},
    {"QLinearSigmoid", 2, 5, quantized_activation},   {"QLinearLeakyRelu", 2, 5, quantized_activation},
    {"QLinearAveragePool", 2, 5, quantized_pool},     {"QLinearGlobalAveragePool", 2, 5, quantized_pool},
    {"QLinearSoftmax", 2, 5, quantized_softmax},      {"QLinearConcat", 5, kAnyNumber, quantized_concat},
    {"QLinearWhere", 9, 9, quantized_where},          {"QGemm", 6, 9, quantized_general_product},
    {"DynamicQuantizeMatMul", 3, 5, dynamic_product}, {"MatMulIntegerToFloat", 4, 7, integer_product_to_real},
};

}  // namespace

std::span<const OnnxOperator> microsoft_quantization_operators() { return kMicrosoftQuantizationOperators; }

}  // namespace foliot
