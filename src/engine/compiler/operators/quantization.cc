// Quantisation: as operators of devices where scales are known, else by the
// arithmetic that defines it.
#include "engine/compiler/operators/quantization.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/convolution.h"
#include "engine/compiler/operators/element_type.h"
#include "engine/compiler/operators/onnx_operator.h"

namespace foliot {
namespace {

struct Range {
  double low, high;
};

Result<Range> range_of(DataType type) {
  switch (type) {
    case DataType::kUint8: return Range{0, 255};
    case DataType::kInt8: return Range{-128, 127};
    case DataType::kUint16: return Range{0, 65535};
    case DataType::kInt16: return Range{-32768, 32767};
    default: return Status::unimplemented(fmt::format("nothing is quantised to {}", to_string(type)));
  }
}

// A scale or zero point, of a whole tensor, of each entry of dimension `axis`, or
// of each block of `block` entries of it, brought to a shape that broadcasts to `shape`.
ValueIndex spread(Composer& c, ValueIndex parameter, const Shape& shape, int64_t axis, int64_t block) {
  const Shape own = c.shape(parameter);
  const auto dimension = static_cast<size_t>(axis);
  if (element_count(own) == 1) return c.reshape(parameter, {});
  if (own.size() == 1) {
    Shape seen(shape.size(), 1);
    seen[dimension] = own[0];
    return c.reshape(parameter, seen);
  }
  if (block < 1 || own.size() != shape.size()) return parameter;
  Shape apart = own, repeated = own, joined = own;
  apart.insert(apart.begin() + axis + 1, 1);
  repeated.insert(repeated.begin() + axis + 1, block);
  joined[dimension] *= block;
  const ValueIndex whole = c.reshape(c.expand(c.reshape(parameter, apart), repeated), joined);
  return c.slice(whole, axis, 0, std::min(shape[dimension], joined[dimension]));
}

// (x - zero point) * scale, all in float32.
ValueIndex dequantized(Composer& c, ValueIndex x, ValueIndex scale, ValueIndex zero_point) {
  ValueIndex wide = c.cast(x, DataType::kFloat32);
  if (zero_point != kNoValue) wide = c.sub(wide, c.cast(zero_point, DataType::kFloat32));
  return c.mul(wide, c.cast(scale, DataType::kFloat32));
}

// round(x / scale) + zero point, kept within the type.
ValueIndex quantized(Composer& c, ValueIndex x, ValueIndex scale, ValueIndex zero_point, DataType type, Range range) {
  ValueIndex steps = c.unary(Function::kRound, c.div(c.cast(x, DataType::kFloat32), c.cast(scale, DataType::kFloat32)));
  if (zero_point != kNoValue) steps = c.add(steps, c.cast(zero_point, DataType::kFloat32));
  return c.cast(c.unary(Function::kClip, steps, range.low, range.high), type);
}

// Parameters, not quite as they stand: `otherwise` for a missing zero point.
struct Granularity {
  ValueIndex scale, zero_point;
};

Result<Granularity> read_granularity(NodeTranslation& node, Composer& c) {
  const Shape shape = node.shape(0);
  int64_t axis = 0;
  if (element_count(node.shape(1)) != 1) {
    FOLIOT_ASSIGN_OR_RETURN(axis, node.axis(node.integer("axis", 1), node.rank(0)));
  }
  const int64_t block = node.integer("block_size", 0);
  Granularity result{.scale = spread(c, node.input(1), shape, axis, block), .zero_point = kNoValue};
  if (node.has_input(2)) result.zero_point = spread(c, node.input(2), shape, axis, block);
  FOLIOT_RETURN_IF_ERROR(c.status());
  FOLIOT_ASSIGN_OR_RETURN(const Shape wide, broadcast(c.shape(result.scale), shape));
  if (wide != shape) return Status::invalid_argument("the scale does not fit the input");
  return result;
}

bool is_byte(DataType type) { return type == DataType::kUint8 || type == DataType::kInt8; }

// Parameters that are known, in float32 and integers: what devices take.
struct Parameters {
  std::vector<double> scales;
  std::vector<int64_t> zero_points;
};

std::optional<Parameters> known_parameters(const GraphBuilder& builder, ValueIndex scale, ValueIndex zero_point) {
  if (builder.value(scale).type != DataType::kFloat32 || !builder.value(scale).is_constant()) return std::nullopt;
  if (zero_point != kNoValue && !builder.value(zero_point).is_constant()) return std::nullopt;
  Parameters result;
  result.scales = to_doubles(builder.constant(scale));
  result.zero_points.assign(result.scales.size(), 0);
  if (zero_point != kNoValue) result.zero_points = to_integers(builder.constant(zero_point));
  if (result.scales.empty() || result.zero_points.size() != result.scales.size()) return std::nullopt;
  for (double known : result.scales) {
    if (!std::isfinite(known) || known <= 0) return std::nullopt;
  }
  return result;
}

// A tensor with one scale, between float32 and bytes.
ValueIndex convert_whole(Composer& c, OperatorKind kind, ValueIndex x, DataType type, const Parameters& by) {
  Attributes attributes;
  attributes.set("scale", by.scales[0]);
  attributes.set("zero_point", by.zero_points[0]);
  return c.emit(kind, {x}, std::move(attributes), ValueType{type, c.shape(x)});
}

// Weights, which stay as they are until the operator that multiplies them is known.
ValueIndex dequantize_weights(Composer& c, ValueIndex x, Parameters by, int64_t axis) {
  Attributes attributes;
  attributes.set("axis", by.scales.size() > 1 ? axis : 0);
  attributes.set("scales", std::move(by.scales));
  attributes.set("zero_points", std::move(by.zero_points));
  return c.emit(OperatorKind::kDequantize, {x}, std::move(attributes), ValueType{DataType::kFloat32, c.shape(x)});
}

// One scale, or as many as the input has entries along `axis`.
bool fits_weights(const Composer& c, ValueIndex x, ValueIndex scale, const Parameters& by, int64_t axis) {
  if (by.scales.size() == 1) return true;
  return axis >= 0 && axis < c.rank(x) && c.rank(scale) == 1 &&
         static_cast<int64_t>(by.scales.size()) == c.shape(x)[static_cast<size_t>(axis)];
}

// As operators of the device; kNoValue: it has none for them.
ValueIndex dequantize_known(NodeTranslation& node, Composer& c, const QuantizedOperand& x, int64_t axis) {
  if (!c.status().ok() || !is_byte(c.type(x.codes))) return kNoValue;
  const auto known = known_parameters(node.builder(), x.scale, x.zero_point);
  if (!known) return kNoValue;
  if (!node.builder().value(x.codes).is_constant()) {
    if (known->scales.size() != 1) return kNoValue;
    return convert_whole(c, OperatorKind::kDequantize, x.codes, DataType::kFloat32, *known);
  }
  return fits_weights(c, x.codes, x.scale, *known, axis) ? dequantize_weights(c, x.codes, *known, axis) : kNoValue;
}

ValueIndex quantize_known(NodeTranslation& node, Composer& c, ValueIndex x, ValueIndex scale, ValueIndex zero_point,
                          DataType type) {
  if (!c.status().ok() || !is_byte(type) || c.type(x) != DataType::kFloat32) return kNoValue;
  const auto known = known_parameters(node.builder(), scale, zero_point);
  if (!known || known->scales.size() != 1 || node.builder().value(x).is_constant()) return kNoValue;
  return convert_whole(c, OperatorKind::kQuantize, x, type, *known);
}

Status quantize_linear(NodeTranslation& node) {
  DataType type = node.has_input(2) ? node.value(2).type : DataType::kUint8;
  if (const int64_t number = node.integer("output_dtype", 0); number != 0) {
    FOLIOT_ASSIGN_OR_RETURN(type, element_type(number));
  }
  FOLIOT_ASSIGN_OR_RETURN(const Range range, range_of(type));
  Composer c(node.builder());
  if (const ValueIndex known = quantize_known(node, c, node.input(0), node.input(1), node.input(2), type);
      known != kNoValue) {
    return c.finish(node, known);
  }
  FOLIOT_ASSIGN_OR_RETURN(const Granularity by, read_granularity(node, c));
  return c.finish(node, quantized(c, node.input(0), by.scale, by.zero_point, type, range));
}

// A matrix of constants in blocks, which stay as they are until the product that they are for is known; kNoValue: not
// such a one.
ValueIndex dequantize_blocks(NodeTranslation& node, Composer& c, int64_t axis, int64_t block) {
  const Shape shape = node.shape(0);
  const auto is_constant = [&](size_t i) { return node.value(i).is_constant(); };
  if (shape.size() != 2 || axis < 0 || axis > 1 || block < 1 || !is_byte(node.value(0).type) || !is_constant(0) ||
      !is_constant(1) || (node.has_input(2) && (!is_constant(2) || node.value(2).type != node.value(0).type))) {
    return kNoValue;
  }
  Shape blocks = shape;
  int64_t& extent = blocks[static_cast<size_t>(axis)];
  extent = (extent + block - 1) / block;
  if (node.shape(1) != blocks || (node.has_input(2) && node.shape(2) != blocks)) return kNoValue;
  Attributes attributes;
  attributes.set("axis", axis);
  attributes.set("block", block);
  std::vector<ValueIndex> inputs{node.input(0), node.input(1)};
  if (node.has_input(2)) inputs.push_back(node.input(2));
  return c.emit(OperatorKind::kDequantize, std::move(inputs), std::move(attributes),
                ValueType{DataType::kFloat32, shape});
}

Status dequantize_linear(NodeTranslation& node) {
  DataType type = node.value(1).type;
  if (const int64_t number = node.integer("output_dtype", 0); number != 0) {
    FOLIOT_ASSIGN_OR_RETURN(type, element_type(number));
  }
  Composer c(node.builder());
  if (type == DataType::kFloat32 && node.value(1).type == type) {
    const int64_t block = node.integer("block_size", 0);
    int64_t axis = node.integer("axis", 1);
    if (axis < 0) axis += node.rank(0);
    const ValueIndex known =
        block != 0 ? dequantize_blocks(node, c, axis, block)
                   : dequantize_known(
                         node, c, {.codes = node.input(0), .scale = node.input(1), .zero_point = node.input(2)}, axis);
    if (known != kNoValue) return c.finish(node, known);
  }
  FOLIOT_ASSIGN_OR_RETURN(const Granularity by, read_granularity(node, c));
  return c.finish(node, c.cast(dequantized(c, node.input(0), by.scale, by.zero_point), type));
}

Status dynamic_quantize_linear(NodeTranslation& node) {
  Composer c(node.builder());
  const QuantizedOperand result = quantize_dynamically(c, node.input(0));
  FOLIOT_RETURN_IF_ERROR(c.finish(node, result.scale, 1));
  FOLIOT_RETURN_IF_ERROR(c.finish(node, result.zero_point, 2));
  return c.finish(node, result.codes);
}

// A parameter per row of a matrix (or per matrix), as a column.
ValueIndex per_row(Composer& c, ValueIndex parameter) {
  const Shape shape = c.shape(parameter);
  if (element_count(shape) == 1) return c.reshape(parameter, {});
  return shape.size() == 1 ? c.reshape(parameter, {shape[0], 1}) : parameter;
}

ValueIndex per_column(Composer& c, ValueIndex parameter) {
  return element_count(c.shape(parameter)) == 1 ? c.reshape(parameter, {}) : parameter;
}

Status quantized_product(NodeTranslation& node) {
  if (node.rank(0) < 2 || node.rank(3) < 2) return Status::unimplemented("operands are no matrices");
  const DataType type = node.value(7).type;
  FOLIOT_ASSIGN_OR_RETURN(const Range range, range_of(type));
  Composer c(node.builder());
  // Where one scale is of all rows; else by plain arithmetic.
  const auto is_scalar = [&](size_t i) { return element_count(node.shape(i)) == 1; };
  const QuantizedOperand given_a{.codes = node.input(0), .scale = node.input(1), .zero_point = node.input(2)};
  const QuantizedOperand given_b{.codes = node.input(3), .scale = node.input(4), .zero_point = node.input(5)};
  const bool simple = is_scalar(1) && is_scalar(2) && node.rank(4) < 2 && node.rank(5) < 2;
  const ValueIndex a = simple
                           ? dequantize(node, c, given_a)
                           : dequantized(c, given_a.codes, per_row(c, given_a.scale), per_row(c, given_a.zero_point));
  const ValueIndex b =
      simple ? dequantize(node, c, given_b, node.rank(3) - 1)
             : dequantized(c, given_b.codes, per_column(c, given_b.scale), per_column(c, given_b.zero_point));
  const ValueIndex y = c.matmul(a, b);
  if (is_scalar(6) && is_scalar(7)) return c.finish(node, quantize(node, c, y, node.input(6), node.input(7)));
  return c.finish(node, quantized(c, y, per_row(c, node.input(6)), per_row(c, node.input(7)), type, range));
}

// As integers, without their zero point.
ValueIndex centred(Composer& c, ValueIndex x, ValueIndex zero_point) {
  const ValueIndex wide = c.cast(x, DataType::kInt32);
  return zero_point == kNoValue ? wide : c.sub(wide, c.cast(zero_point, DataType::kInt32));
}

Status integer_product(NodeTranslation& node) {
  if (node.rank(0) < 2 || node.rank(1) < 2) return Status::unimplemented("operands are no matrices");
  Composer c(node.builder());
  const ValueIndex a_zero = node.has_input(2) ? per_row(c, node.input(2)) : kNoValue;
  const ValueIndex b_zero = node.has_input(3) ? per_column(c, node.input(3)) : kNoValue;
  return c.finish(node, c.matmul(centred(c, node.input(0), a_zero), centred(c, node.input(1), b_zero)));
}

// A parameter per output channel of weights [M, C, k..].
ValueIndex per_channel(Composer& c, ValueIndex parameter, int64_t rank) {
  const Shape shape = c.shape(parameter);
  if (element_count(shape) == 1) return c.reshape(parameter, {});
  Shape seen(static_cast<size_t>(rank), 1);
  seen[0] = shape[0];
  return c.reshape(parameter, seen);
}

Status quantized_convolution(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(Attributes attributes, convolution_attributes(node, 0, 3));
  Composer c(node.builder());
  const ValueIndex x =
      dequantize(node, c, {.codes = node.input(0), .scale = node.input(1), .zero_point = node.input(2)});
  const ValueIndex w =
      dequantize(node, c, {.codes = node.input(3), .scale = node.input(4), .zero_point = node.input(5)});
  std::vector<ValueIndex> inputs{x, w};
  if (node.has_input(8)) {
    const ValueIndex scale = c.mul(c.reshape(node.input(1), {}), node.input(4));
    inputs.push_back(c.mul(c.cast(node.input(8), DataType::kFloat32), scale));
  }
  const ValueIndex y = c.emit(OperatorKind::kConvolution, std::move(inputs), std::move(attributes));
  return c.finish(node, quantize(node, c, y, node.input(6), node.input(7)));
}

// Sums of fewer products than this are exact in float32: each is below 2^16.
constexpr uint64_t kExactProducts = 256;

Status integer_convolution(NodeTranslation& node) {
  const Shape weights = node.shape(1);
  FOLIOT_ASSIGN_OR_RETURN(Attributes attributes, convolution_attributes(node, 0, 1));
  if (element_count(Shape(weights.begin() + 1, weights.end())) > kExactProducts) {
    return Status::unimplemented(fmt::format("weights {} are too large to be summed up exactly", to_string(weights)));
  }
  Composer c(node.builder());
  const auto exact = [&](size_t i, ValueIndex zero) {
    return c.cast(centred(c, node.input(i), zero), DataType::kFloat32);
  };
  const ValueIndex x = exact(0, node.input(2));
  const ValueIndex w = exact(1, node.has_input(3) ? per_channel(c, node.input(3), node.rank(1)) : kNoValue);
  return c.finish(node, c.cast(c.emit(OperatorKind::kConvolution, {x, w}, std::move(attributes)), DataType::kInt32));
}

constexpr OnnxOperator kQuantizationOperators[] = {
    {"QuantizeLinear", 2, 3, quantize_linear},
    {"DequantizeLinear", 2, 3, dequantize_linear},
    {"DynamicQuantizeLinear", 1, 1, dynamic_quantize_linear},
    {"QLinearMatMul", 8, 8, quantized_product},
    {"MatMulInteger", 2, 4, integer_product},
    {"QLinearConv", 8, 9, quantized_convolution},
    {"ConvInteger", 2, 4, integer_convolution},
};

}  // namespace

ValueIndex dequantize(NodeTranslation& node, Composer& c, const QuantizedOperand& x, int64_t axis) {
  const ValueIndex known = dequantize_known(node, c, x, axis);
  if (known != kNoValue || !c.status().ok()) return known;
  const Shape shape = c.shape(x.codes);
  const auto along = [&](ValueIndex parameter) {
    return parameter == kNoValue ? kNoValue : spread(c, parameter, shape, axis, 0);
  };
  return dequantized(c, x.codes, along(x.scale), along(x.zero_point));
}

ValueIndex quantize(NodeTranslation& node, Composer& c, ValueIndex x, ValueIndex scale, ValueIndex zero_point) {
  const DataType type = zero_point == kNoValue ? DataType::kUint8 : c.type(zero_point);
  const ValueIndex known = quantize_known(node, c, x, scale, zero_point, type);
  if (known != kNoValue || !c.status().ok()) return known;
  const Result<Range> range = range_of(type);
  c.require(range.ok(), "nothing is quantised to the type of its zero point");
  c.require(element_count(c.shape(scale)) == 1, "the scale of a result is no scalar");
  return quantized(c, x, c.reshape(scale, {}), zero_point == kNoValue ? kNoValue : c.reshape(zero_point, {}), type,
                   range.ok() ? *range : Range{0, 0});
}

QuantizedOperand quantize_dynamically(Composer& c, ValueIndex x) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < c.rank(x); ++i) all.push_back(i);
  const ValueIndex zero = c.like(x, 0);
  const ValueIndex high = c.binary(Function::kMax, c.reduce(Function::kMax, x, all, false), zero);
  const ValueIndex low = c.binary(Function::kMin, c.reduce(Function::kMin, x, all, false), zero);
  const ValueIndex scale = c.linear(c.sub(high, low), 1.0 / 255);
  const ValueIndex offset =
      c.unary(Function::kRound, c.unary(Function::kClip, c.unary(Function::kNeg, c.div(low, scale)), 0, 255));
  const ValueIndex zero_point = c.cast(offset, DataType::kUint8);
  return {.codes = quantized(c, x, scale, zero_point, DataType::kUint8, {0, 255}),
          .scale = scale,
          .zero_point = zero_point};
}

std::span<const OnnxOperator> quantization_operators() { return kQuantizationOperators; }

}  // namespace foliot
