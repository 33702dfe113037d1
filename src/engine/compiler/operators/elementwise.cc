// Operators that work element by element.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/element_type.h"
#include "engine/compiler/operators/onnx_operator.h"

namespace foliot {
namespace {

using Name = std::pair<std::string_view, Function>;

template <size_t kCount>
Function function_of(const std::array<Name, kCount>& names, std::string_view type) {
  for (const auto& [name, function] : names) {
    if (name == type) return function;
  }
  FOLIOT_CHECK(false);
}

constexpr std::array<Name, 27> kUnary{{{"Relu", Function::kRelu},   {"Sigmoid", Function::kSigmoid},
                                       {"Tanh", Function::kTanh},   {"Erf", Function::kErf},
                                       {"Exp", Function::kExp},     {"Log", Function::kLog},
                                       {"Sqrt", Function::kSqrt},   {"Neg", Function::kNeg},
                                       {"Abs", Function::kAbs},     {"Reciprocal", Function::kReciprocal},
                                       {"Floor", Function::kFloor}, {"Ceil", Function::kCeil},
                                       {"Round", Function::kRound}, {"Sign", Function::kSign},
                                       {"Not", Function::kNot},     {"Softplus", Function::kSoftplus},
                                       {"Sin", Function::kSin},     {"Cos", Function::kCos},
                                       {"Tan", Function::kTan},     {"Asin", Function::kAsin},
                                       {"Acos", Function::kAcos},   {"Atan", Function::kAtan},
                                       {"Sinh", Function::kSinh},   {"Cosh", Function::kCosh},
                                       {"Asinh", Function::kAsinh}, {"Acosh", Function::kAcosh},
                                       {"Atanh", Function::kAtanh}}};

Status unary(NodeTranslation& node) {
  return node.finish(node.builder().unary(function_of(kUnary, node.type()), node.input(0)));
}

constexpr std::array<Name, 16> kBinary{{{"Add", Function::kAdd},
                                        {"Sub", Function::kSub},
                                        {"Mul", Function::kMul},
                                        {"Div", Function::kDiv},
                                        {"Equal", Function::kEqual},
                                        {"Less", Function::kLess},
                                        {"LessOrEqual", Function::kLessOrEqual},
                                        {"Greater", Function::kGreater},
                                        {"GreaterOrEqual", Function::kGreaterOrEqual},
                                        {"And", Function::kAnd},
                                        {"Or", Function::kOr},
                                        {"Xor", Function::kXor},
                                        {"BitwiseAnd", Function::kBitAnd},
                                        {"BitwiseOr", Function::kBitOr},
                                        {"BitwiseXor", Function::kBitXor},
                                        {"PRelu", Function::kPrelu}}};

Status binary(NodeTranslation& node) {
  return node.finish(node.builder().binary(function_of(kBinary, node.type()), node.input(0), node.input(1)));
}

constexpr std::array<Name, 4> kVariadic{
    {{"Sum", Function::kAdd}, {"Mean", Function::kAdd}, {"Min", Function::kMin}, {"Max", Function::kMax}}};

// Several operands, taken two by two from the left.
Status variadic(NodeTranslation& node) {
  const Function function = function_of(kVariadic, node.type());
  ValueIndex result = node.input(0);
  for (size_t i = 1; i < node.input_count(); ++i) {
    if (!node.has_input(i)) return Status::invalid_argument("an operand is missing");
    FOLIOT_ASSIGN_OR_RETURN(result, node.builder().binary(function, result, node.input(i)));
  }
  if (node.type() == "Mean") {
    FOLIOT_ASSIGN_OR_RETURN(
        result, node.builder().unary(Function::kLinear, result, 1.0 / static_cast<double>(node.input_count()), 0));
  }
  node.set_output(0, result);
  return {};
}

// The exponent that all of a floating point base is raised to, if it is one constant.
std::optional<double> common_exponent(const NodeTranslation& node) {
  const Value& base = node.value(0);
  const Value& exponent = node.value(1);
  const bool floating = base.type == DataType::kFloat32 || base.type == DataType::kFloat64;
  if (!floating || !exponent.is_constant() || element_count(exponent.shape) != 1) return std::nullopt;
  if (exponent.shape.size() > base.shape.size()) return std::nullopt;
  const auto constant = node.constant(1, "the exponent");
  return constant.ok() ? std::optional(to_doubles(*constant)[0]) : std::nullopt;
}

// Roots and reciprocals are functions of their own, which cost less than a power and can be fused. Squares and cubes
// remain powers: the kernel multiplies, and patterns look for them.
Status power(NodeTranslation& node) {
  const double exponent = common_exponent(node).value_or(0);
  const ValueIndex x = node.input(0);
  Composer c(node.builder());
  if (exponent == 0.5) return c.finish(node, c.unary(Function::kSqrt, x));
  if (exponent == -0.5) return c.finish(node, c.unary(Function::kReciprocal, c.unary(Function::kSqrt, x)));
  if (exponent == -1) return c.finish(node, c.unary(Function::kReciprocal, x));
  if (exponent == 1.5) return c.finish(node, c.mul(x, c.unary(Function::kSqrt, x)));
  const DataType type = node.value(0).type, exponent_type = node.value(1).type;
  // A fraction would be lost if the exponent were an integer.
  if (is_integer(type) && is_floating(exponent_type)) {
    const ValueIndex wide = c.cast(x, DataType::kFloat64), raised = c.cast(node.input(1), DataType::kFloat64);
    return c.finish(node, c.cast(c.binary(Function::kPow, wide, raised), type));
  }
  return c.finish(node, c.binary(Function::kPow, x, c.cast(node.input(1), type)));
}

Status modulo(NodeTranslation& node) {
  const Function function = node.integer("fmod", 0) != 0 ? Function::kFmod : Function::kMod;
  return node.finish(node.builder().binary(function, node.input(0), node.input(1)));
}

Status bit_shift(NodeTranslation& node) {
  const std::string direction = node.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") return Status::invalid_argument("direction is '" + direction + "'");
  const Function function = direction == "LEFT" ? Function::kShiftLeft : Function::kShiftRight;
  return node.finish(node.builder().binary(function, node.input(0), node.input(1)));
}

Status bitwise_not(NodeTranslation& node) {
  const DataType type = node.value(0).type;
  Composer c(node.builder());
  const int64_t ones = -1;
  return c.finish(node,
                  c.binary(Function::kBitXor, node.input(0), c.constant(from_integers(type, {}, std::span(&ones, 1)))));
}

Status identity(NodeTranslation& node) {
  node.set_output(0, node.input(0));
  return {};
}

// Inference: nothing is dropped.
Status dropout(NodeTranslation& node) {
  if (node.has_input(2)) {
    FOLIOT_ASSIGN_OR_RETURN(const Constant training, node.constant(2, "'training_mode'"));
    FOLIOT_ASSIGN_OR_RETURN(const double ratio, [&]() -> Result<double> {
      if (!node.has_input(1)) return 0.5;
      FOLIOT_ASSIGN_OR_RETURN(const Constant known, node.constant(1, "'ratio'"));
      return element_count(known.shape) == 1 ? to_doubles(known)[0] : 0.5;
    }());
    if (to_integers(training) != std::vector<int64_t>{0} && ratio != 0) {
      return Status::unimplemented("training_mode is not supported: what is dropped is random");
    }
  }
  Composer c(node.builder());
  if (node.wants_output(1)) c.finish(node, c.expand(c.scalar(DataType::kBool, 1), node.shape(0)), 1).ok();
  return c.finish(node, node.input(0));
}

// One bound of Clip from an operand, if it is there and known.
Result<double> bound(const NodeTranslation& node, size_t i, double otherwise) {
  if (!node.has_input(i)) return otherwise;
  FOLIOT_ASSIGN_OR_RETURN(const Constant constant, node.constant(i, i == 1 ? "'min'" : "'max'"));
  const std::vector<double> values = to_doubles(constant);
  if (values.size() != 1) return Status::invalid_argument("a bound is not a scalar");
  return values[0];
}

// Bounds that are known only when it runs. Where they cross, the upper one holds.
Status clip_to_operands(NodeTranslation& node) {
  Composer c(node.builder());
  ValueIndex x = node.input(0);
  for (size_t i : {1, 2}) {
    if (!node.has_input(i)) continue;
    if (element_count(node.shape(i)) != 1) return Status::invalid_argument("a bound is not a scalar");
    x = c.binary(i == 1 ? Function::kMax : Function::kMin, x, c.reshape(node.input(i), {}));
  }
  return c.finish(node, x);
}

// Whether a bound is an integer that float64 need not have.
bool is_beyond_float64(const Constant& bound) {
  return is_integer(bound.type) && size_of(bound.type) == 8 &&
         std::ranges::any_of(to_doubles(bound), [](double value) { return std::abs(value) >= 0x1p53; });
}

Status clip(NodeTranslation& node) {
  for (size_t i : {1, 2}) {
    if (!node.has_input(i)) continue;
    if (!node.value(i).is_constant() || is_beyond_float64(node.builder().constant(node.input(i))))
      return clip_to_operands(node);
  }
  const DataType type = node.value(0).type;
  const double most = is_integer(type) || type == DataType::kFloat64 ? std::numeric_limits<double>::max()
                                                                     : std::numeric_limits<float>::max();
  double low = node.real("min", -most), high = node.real("max", most);
  FOLIOT_ASSIGN_OR_RETURN(low, bound(node, 1, low));
  FOLIOT_ASSIGN_OR_RETURN(high, bound(node, 2, high));
  // Where the bounds cross, the upper one holds.
  return node.finish(node.builder().unary(Function::kClip, node.input(0), std::min(low, high), high));
}

Status leaky_relu(NodeTranslation& node) {
  return node.finish(node.builder().unary(Function::kLeakyRelu, node.input(0), node.real("alpha", 0.01)));
}

Status elu(NodeTranslation& node) {
  return node.finish(node.builder().unary(Function::kElu, node.input(0), node.real("alpha", 1)));
}

// gamma * elu(x, alpha)
Status selu(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex inner, node.builder().unary(Function::kElu, node.input(0),
                                                                       node.real("alpha", 1.67326319217681884765625)));
  return node.finish(node.builder().unary(Function::kLinear, inner, node.real("gamma", 1.05070102214813232421875), 0));
}

Status hard_sigmoid(NodeTranslation& node) {
  return node.finish(
      node.builder().unary(Function::kHardSigmoid, node.input(0), node.real("alpha", 0.2), node.real("beta", 0.5)));
}

Status hard_swish(NodeTranslation& node) {
  return node.finish(node.builder().unary(Function::kHardSwish, node.input(0)));
}

Status gelu(NodeTranslation& node) {
  const std::string approximate = node.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    return Status::invalid_argument("approximate is '" + approximate + "', neither 'none' nor 'tanh'");
  }
  return node.finish(
      node.builder().unary(approximate == "tanh" ? Function::kGeluTanh : Function::kGelu, node.input(0)));
}

// x * sigmoid(alpha * x)
ValueIndex swish_of(Composer& c, ValueIndex x, double alpha) {
  return c.mul(x, c.unary(Function::kSigmoid, alpha == 1 ? x : c.linear(x, alpha)));
}

Status swish(NodeTranslation& node) {
  Composer c(node.builder());
  return c.finish(node, swish_of(c, node.input(0), node.real("alpha", 1)));
}

Status gated_swish(NodeTranslation& node) {
  Composer c(node.builder());
  return c.finish(node, c.mul(swish_of(c, node.input(0), node.real("alpha", 1)), node.input(1)));
}

// max(0, x) + min(0, alpha * (exp(x / alpha) - 1)) = alpha * elu(x / alpha)
Status celu(NodeTranslation& node) {
  const double alpha = node.real("alpha", 1);
  if (!(alpha > 0)) return Status::invalid_argument("alpha is not positive");
  Composer c(node.builder());
  return c.finish(node, c.linear(c.unary(Function::kElu, c.linear(node.input(0), 1 / alpha), 1), alpha));
}

// x where it is above alpha, else 0
Status thresholded_relu(NodeTranslation& node) {
  Composer c(node.builder());
  const ValueIndex x = node.input(0);
  return c.finish(node, c.where(c.binary(Function::kGreater, x, c.like(x, node.real("alpha", 1))), x, c.like(x, 0)));
}

// x + bias below -lambd, x - bias above lambd, else 0
Status shrink(NodeTranslation& node) {
  const double lambda = node.real("lambd", 0.5), bias = node.real("bias", 0);
  Composer c(node.builder());
  const ValueIndex x = node.input(0);
  const ValueIndex above =
      c.where(c.binary(Function::kGreater, x, c.like(x, lambda)), c.sub(x, c.like(x, bias)), c.like(x, 0));
  return c.finish(node, c.where(c.binary(Function::kLess, x, c.like(x, -lambda)), c.add(x, c.like(x, bias)), above));
}

// Only NaN differs from itself.
Status is_nan(NodeTranslation& node) {
  Composer c(node.builder());
  return c.finish(node, c.unary(Function::kNot, c.binary(Function::kEqual, node.input(0), node.input(0))));
}

Status is_infinite(NodeTranslation& node) {
  const bool positive = node.integer("detect_positive", 1) != 0, negative = node.integer("detect_negative", 1) != 0;
  Composer c(node.builder());
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const ValueIndex x = node.input(0);
  if (positive && negative) {
    return c.finish(node, c.binary(Function::kEqual, c.unary(Function::kAbs, x), c.like(x, infinity)));
  }
  const ValueIndex looked_for = c.like(x, positive ? infinity : -infinity);
  const ValueIndex found = c.binary(Function::kEqual, x, looked_for);
  return c.finish(node, positive || negative ? found : c.binary(Function::kAnd, found, c.scalar(DataType::kBool, 0)));
}

// x / (1 + |x|)
Status softsign(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex magnitude, node.builder().unary(Function::kAbs, node.input(0)));
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex divisor, node.builder().unary(Function::kLinear, magnitude, 1, 1));
  return node.finish(node.builder().binary(Function::kDiv, node.input(0), divisor));
}

// x * tanh(softplus(x)), which with e = exp(x) is x * e(e + 2) / (e(e + 2) + 2):
// exact where softplus is tiny. Beyond 20 the fraction is 1.
Status mish(NodeTranslation& node) {
  Composer c(node.builder());
  const ValueIndex x = node.input(0);
  const ValueIndex e = c.unary(Function::kExp, c.binary(Function::kMin, x, c.like(x, 20)));
  const ValueIndex w = c.mul(e, c.linear(e, 1, 2));
  return c.finish(node, c.mul(x, c.div(w, c.linear(w, 1, 2))));
}

Status cast(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const DataType type, element_type(node.integer("to", 0)));
  return node.finish(node.builder().cast(node.input(0), type));
}

Status bit_cast(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const DataType type, element_type(node.integer("to", 0)));
  if (size_of(type) != size_of(node.value(0).type)) return Status::invalid_argument("the types differ in size");
  Composer c(node.builder());
  return c.finish(node, c.reinterpret(node.input(0), type));
}

Status cast_like(NodeTranslation& node) { return node.finish(node.builder().cast(node.input(0), node.value(1).type)); }

Status where(NodeTranslation& node) {
  return node.finish(node.builder().emit(OperatorKind::kWhere, {node.input(0), node.input(1), node.input(2)}, {}));
}

constexpr OnnxOperator kElementwiseOperators[] = {
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
    {"Tan", 1, 1, unary},
    {"Asin", 1, 1, unary},
    {"Acos", 1, 1, unary},
    {"Atan", 1, 1, unary},
    {"Sinh", 1, 1, unary},
    {"Cosh", 1, 1, unary},
    {"Asinh", 1, 1, unary},
    {"Acosh", 1, 1, unary},
    {"Atanh", 1, 1, unary},
    {"BitwiseAnd", 2, 2, binary},
    {"BitwiseOr", 2, 2, binary},
    {"BitwiseXor", 2, 2, binary},
    {"BitwiseNot", 1, 1, bitwise_not},
    {"BitShift", 2, 2, bit_shift},
    {"BitCast", 1, 1, bit_cast},
    {"IsNaN", 1, 1, is_nan},
    {"IsInf", 1, 1, is_infinite},
    {"Swish", 1, 1, swish},
    {"SwiGLU", 2, 2, gated_swish},
    {"Celu", 1, 1, celu},
    {"ThresholdedRelu", 1, 1, thresholded_relu},
    {"Shrink", 1, 1, shrink},
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
    {"Dropout", 1, 3, dropout},
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

std::span<const OnnxOperator> elementwise_operators() { return kElementwiseOperators; }

}  // namespace foliot
