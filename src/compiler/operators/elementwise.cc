// Operators that work element by element.
#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include "compiler/operators/onnx_operator.h"

namespace foliot {
namespace {

using Name = std::pair<std::string_view, const char*>;

template <size_t kCount>
const char* function_of(const std::array<Name, kCount>& names, std::string_view type) {
  for (const auto& [name, function] : names) {
    if (name == type) return function;
  }
  FOLIOT_CHECK(false);
}

constexpr std::array<Name, 18> kUnary{{{"Relu", "relu"},
                                       {"Sigmoid", "sigmoid"},
                                       {"Tanh", "tanh"},
                                       {"Erf", "erf"},
                                       {"Exp", "exp"},
                                       {"Log", "log"},
                                       {"Sqrt", "sqrt"},
                                       {"Neg", "neg"},
                                       {"Abs", "abs"},
                                       {"Reciprocal", "reciprocal"},
                                       {"Floor", "floor"},
                                       {"Ceil", "ceil"},
                                       {"Round", "round"},
                                       {"Sign", "sign"},
                                       {"Not", "not"},
                                       {"Softplus", "softplus"},
                                       {"Sin", "sin"},
                                       {"Cos", "cos"}}};

Status unary(NodeTranslation& node) {
  return node.finish(node.builder().unary(function_of(kUnary, node.type()), node.input(0)));
}

constexpr std::array<Name, 13> kBinary{{{"Add", "add"},
                                        {"Sub", "sub"},
                                        {"Mul", "mul"},
                                        {"Div", "div"},
                                        {"Equal", "equal"},
                                        {"Less", "less"},
                                        {"LessOrEqual", "less_or_equal"},
                                        {"Greater", "greater"},
                                        {"GreaterOrEqual", "greater_or_equal"},
                                        {"And", "and"},
                                        {"Or", "or"},
                                        {"Xor", "xor"},
                                        {"PRelu", "prelu"}}};

Status binary(NodeTranslation& node) {
  return node.finish(node.builder().binary(function_of(kBinary, node.type()), node.input(0), node.input(1)));
}

constexpr std::array<Name, 4> kVariadic{{{"Sum", "add"}, {"Mean", "add"}, {"Min", "min"}, {"Max", "max"}}};

// Several operands, taken two by two from the left.
Status variadic(NodeTranslation& node) {
  const char* function = function_of(kVariadic, node.type());
  ValueIndex result = node.input(0);
  for (size_t i = 1; i < node.input_count(); ++i) {
    if (!node.has_input(i)) return Status::invalid_argument("an operand is missing");
    FOLIOT_ASSIGN_OR_RETURN(result, node.builder().binary(function, result, node.input(i)));
  }
  if (node.type() == "Mean") {
    FOLIOT_ASSIGN_OR_RETURN(result,
                            node.builder().unary("linear", result, 1.0 / static_cast<double>(node.input_count()), 0));
  }
  node.set_output(0, result);
  return {};
}

Status power(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex exponent, node.builder().cast(node.input(1), node.value(0).type));
  return node.finish(node.builder().binary("pow", node.input(0), exponent));
}

Status modulo(NodeTranslation& node) {
  const bool truncated = node.integer("fmod", 0) != 0;
  if (truncated == is_integer(node.value(0).type)) {
    return Status::unimplemented("Mod is supported with fmod = 1 for reals and fmod = 0 for integers");
  }
  return node.finish(node.builder().binary("mod", node.input(0), node.input(1)));
}

Status identity(NodeTranslation& node) {
  if (node.wants_output(1)) return Status::unimplemented("the mask output of Dropout is not supported");
  node.set_output(0, node.input(0));
  return {};
}

// One bound of Clip from an operand, if it is there and known.
Result<double> bound(const NodeTranslation& node, size_t i, double otherwise) {
  if (!node.has_input(i)) return otherwise;
  FOLIOT_ASSIGN_OR_RETURN(const Constant constant, node.constant(i, i == 1 ? "'min'" : "'max'"));
  const std::vector<double> values = to_doubles(constant);
  if (values.size() != 1) return Status::invalid_argument("a bound is not a scalar");
  return values[0];
}

Status clip(NodeTranslation& node) {
  double low = node.real("min", std::numeric_limits<float>::lowest());
  double high = node.real("max", std::numeric_limits<float>::max());
  if (is_integer(node.value(0).type)) {
    low = static_cast<double>(std::numeric_limits<int64_t>::min());
    high = static_cast<double>(std::numeric_limits<int64_t>::max());
  }
  FOLIOT_ASSIGN_OR_RETURN(low, bound(node, 1, low));
  FOLIOT_ASSIGN_OR_RETURN(high, bound(node, 2, high));
  // Where the bounds cross, the upper one holds.
  return node.finish(node.builder().unary("clip", node.input(0), std::min(low, high), high));
}

Status leaky_relu(NodeTranslation& node) {
  return node.finish(node.builder().unary("leaky_relu", node.input(0), node.real("alpha", 0.01)));
}

Status elu(NodeTranslation& node) {
  return node.finish(node.builder().unary("elu", node.input(0), node.real("alpha", 1)));
}

// gamma * elu(x, alpha)
Status selu(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex inner,
                          node.builder().unary("elu", node.input(0), node.real("alpha", 1.67326319217681884765625)));
  return node.finish(node.builder().unary("linear", inner, node.real("gamma", 1.05070102214813232421875), 0));
}

Status hard_sigmoid(NodeTranslation& node) {
  return node.finish(
      node.builder().unary("hard_sigmoid", node.input(0), node.real("alpha", 0.2), node.real("beta", 0.5)));
}

Status hard_swish(NodeTranslation& node) { return node.finish(node.builder().unary("hard_swish", node.input(0))); }

Status gelu(NodeTranslation& node) {
  const std::string approximate = node.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    return Status::invalid_argument("approximate is '" + approximate + "', neither 'none' nor 'tanh'");
  }
  return node.finish(node.builder().unary(approximate == "tanh" ? "gelu_tanh" : "gelu", node.input(0)));
}

// x / (1 + |x|)
Status softsign(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex magnitude, node.builder().unary("abs", node.input(0)));
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex divisor, node.builder().unary("linear", magnitude, 1, 1));
  return node.finish(node.builder().binary("div", node.input(0), divisor));
}

// x * tanh(softplus(x))
Status mish(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex inner, node.builder().unary("softplus", node.input(0)));
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex gate, node.builder().unary("tanh", inner));
  return node.finish(node.builder().binary("mul", node.input(0), gate));
}

Result<DataType> cast_target(int64_t to) {
  // TensorProto.DataType, by number.
  static constexpr std::array<std::pair<int64_t, DataType>, 13> kTypes{{{1, DataType::kFloat32},
                                                                        {2, DataType::kUint8},
                                                                        {3, DataType::kInt8},
                                                                        {4, DataType::kUint16},
                                                                        {5, DataType::kInt16},
                                                                        {6, DataType::kInt32},
                                                                        {7, DataType::kInt64},
                                                                        {9, DataType::kBool},
                                                                        {10, DataType::kFloat16},
                                                                        {11, DataType::kFloat64},
                                                                        {12, DataType::kUint32},
                                                                        {13, DataType::kUint64},
                                                                        {16, DataType::kBfloat16}}};
  for (const auto& [number, type] : kTypes) {
    if (number == to) return type;
  }
  return Status::unimplemented("casting to ONNX element type " + std::to_string(to) + " is not supported");
}

Status cast(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const DataType type, cast_target(node.integer("to", 0)));
  return node.finish(node.builder().cast(node.input(0), type));
}

Status cast_like(NodeTranslation& node) { return node.finish(node.builder().cast(node.input(0), node.value(1).type)); }

Status where(NodeTranslation& node) {
  return node.finish(node.builder().emit(OperatorKind::kWhere, {node.input(0), node.input(1), node.input(2)}, {}));
}

constexpr OnnxOperator kOperators[] = {
    {"Relu", 1, 1, unary},
    {"Sigmoid", 1, 1, unary},
    {"Tanh", 1, 1, unary},
    {"Erf", 1, 1, unary},
    {"Exp", 1, 1, unary},
    {"Log", 1, 1, unary},
    {"Sqrt", 1, 1, unary},
    {"Neg", 1, 1, unary},
    {"Abs", 1, 1, unary},
    {"Reciprocal", 1, 1, unary},
    {"Floor", 1, 1, unary},
    {"Ceil", 1, 1, unary},
    {"Round", 1, 1, unary},
    {"Sign", 1, 1, unary},
    {"Not", 1, 1, unary},
    {"Softplus", 1, 1, unary},
    {"Sin", 1, 1, unary},
    {"Cos", 1, 1, unary},
    {"Add", 2, 2, binary},
    {"Sub", 2, 2, binary},
    {"Mul", 2, 2, binary},
    {"Div", 2, 2, binary},
    {"Equal", 2, 2, binary},
    {"Less", 2, 2, binary},
    {"LessOrEqual", 2, 2, binary},
    {"Greater", 2, 2, binary},
    {"GreaterOrEqual", 2, 2, binary},
    {"And", 2, 2, binary},
    {"Or", 2, 2, binary},
    {"Xor", 2, 2, binary},
    {"PRelu", 2, 2, binary},
    {"Sum", 1, kAnyNumber, variadic},
    {"Mean", 1, kAnyNumber, variadic},
    {"Min", 1, kAnyNumber, variadic},
    {"Max", 1, kAnyNumber, variadic},
    {"Pow", 2, 2, power},
    {"Mod", 2, 2, modulo},
    {"Identity", 1, 1, identity},
    {"Dropout", 1, 3, identity},
    {"Clip", 1, 3, clip},
    {"LeakyRelu", 1, 1, leaky_relu},
    {"Elu", 1, 1, elu},
    {"Selu", 1, 1, selu},
    {"HardSigmoid", 1, 1, hard_sigmoid},
    {"HardSwish", 1, 1, hard_swish},
    {"Gelu", 1, 1, gelu},
    {"Softsign", 1, 1, softsign},
    {"Mish", 1, 1, mish},
    {"Cast", 1, 1, cast},
    {"CastLike", 2, 2, cast_like},
    {"Where", 3, 3, where},
};

}  // namespace

std::span<const OnnxOperator> elementwise_operators() { return kOperators; }

}  // namespace foliot
