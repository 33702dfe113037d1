// Normalisations and softmax.
#include <fmt/format.h>

#include <cmath>

#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/onnx_operator.h"

namespace foliot {
namespace {

// Inference: scale * (x - mean) / sqrt(variance + epsilon) + bias, as x * factor + shift.
Status batch_normalization(NodeTranslation& node) {
  if (node.integer("training_mode", 0) != 0) return Status::unimplemented("training_mode is not supported");
  if (node.wants_output(1)) return Status::unimplemented("outputs of training are not supported");
  if (node.rank(0) < 2) return Status::invalid_argument("the input has no channels");
  GraphBuilder& builder = node.builder();
  const ValueIndex scale = node.input(1), bias = node.input(2), mean = node.input(3), variance = node.input(4);
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex spread,
                          builder.unary(Function::kLinear, variance, 1, node.real("epsilon", 1e-5)));
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex deviation, builder.unary(Function::kSqrt, spread));
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex factor, builder.binary(Function::kDiv, scale, deviation));
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex centre, builder.binary(Function::kMul, mean, factor));
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex shift, builder.binary(Function::kSub, bias, centre));
  return node.finish(builder.emit(OperatorKind::kAffine, {node.input(0), factor, shift}, {}));
}

Result<ValueIndex> layer_norm(GraphBuilder& builder, std::vector<ValueIndex> inputs, int64_t axis, double epsilon) {
  Attributes attributes;
  attributes.set("axis", axis);
  attributes.set("epsilon", epsilon);
  return builder.emit(OperatorKind::kLayerNorm, std::move(inputs), std::move(attributes));
}

// Brings scale or bias to the shape of the normalised dimensions.
Result<ValueIndex> normalized_parameter(GraphBuilder& builder, ValueIndex parameter, const Shape& shape) {
  if (element_count(builder.value(parameter).shape) == element_count(shape)) return builder.reshape(parameter, shape);
  FOLIOT_ASSIGN_OR_RETURN(const Shape wide, broadcast(builder.value(parameter).shape, shape));
  if (wide != shape) return Status::invalid_argument("scale or bias do not fit the normalised dimensions");
  return builder.expand(parameter, shape);
}

std::vector<int64_t> dimensions_from(int64_t first, int64_t rank) {
  std::vector<int64_t> dimensions;
  for (int64_t i = first; i < rank; ++i) dimensions.push_back(i);
  return dimensions;
}

// The outputs beside the result of LayerNormalization: the mean, and one by the
// standard deviation. In float32 where x is narrower.
Status add_statistics(NodeTranslation& node, int64_t axis) {
  if (!node.wants_output(1) && !node.wants_output(2)) return {};
  Composer c(node.builder());
  const std::vector<int64_t> axes = dimensions_from(axis, node.rank(0));
  const DataType type = node.value(0).type;
  const ValueIndex x = c.cast(node.input(0), type == DataType::kFloat64 ? type : DataType::kFloat32);
  const ValueIndex mean = c.reduce(Function::kMean, x, axes);
  const ValueIndex difference = c.sub(x, mean);
  const ValueIndex variance = c.reduce(Function::kMean, c.mul(difference, difference), axes);
  const ValueIndex deviation = c.unary(Function::kSqrt, c.linear(variance, 1, node.real("epsilon", 1e-5)));
  FOLIOT_RETURN_IF_ERROR(c.finish(node, mean, 1));
  return c.finish(node, c.unary(Function::kReciprocal, deviation), 2);
}

Status layer_normalization(NodeTranslation& node) {
  GraphBuilder& builder = node.builder();
  const Shape shape = node.shape(0);
  FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(node.integer("axis", -1), node.rank(0)));
  FOLIOT_RETURN_IF_ERROR(add_statistics(node, axis));
  const Shape normalized(shape.begin() + axis, shape.end());
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex scale, normalized_parameter(builder, node.input(1), normalized));
  ValueIndex bias = node.input(2);
  if (bias == kNoValue) {
    bias = builder.add_constant(
        from_doubles(node.value(0).type, normalized, std::vector<double>(element_count(normalized), 0)));
  } else {
    FOLIOT_ASSIGN_OR_RETURN(bias, normalized_parameter(builder, bias, normalized));
  }
  return node.finish(layer_norm(builder, {node.input(0), scale, bias}, axis, node.real("epsilon", 1e-5)));
}

// Every channel of every row by itself: a layer norm over its elements, with
// scale and bias per channel.
Status instance_normalization(NodeTranslation& node) {
  GraphBuilder& builder = node.builder();
  const Shape shape = node.shape(0);
  if (shape.size() < 3) return Status::invalid_argument("the input has no spatial dimension");
  int64_t elements = 1;
  for (size_t i = 2; i < shape.size(); ++i) elements *= shape[i];
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex flat, builder.reshape(node.input(0), {shape[0], shape[1], elements}));
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex scale, builder.reshape(node.input(1), {shape[1], 1}));
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex bias, builder.reshape(node.input(2), {shape[1], 1}));
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex normalized,
                          layer_norm(builder, {flat, scale, bias}, 2, node.real("epsilon", 1e-5)));
  return node.finish(builder.reshape(normalized, shape));
}

// x / sqrt(mean(x^2) + epsilon) * scale
Status root_mean_square_normalization(NodeTranslation& node) {
  if (node.wants_output(1)) return Status::unimplemented("output 1 is for training");
  FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(node.integer("axis", -1), node.rank(0)));
  const DataType type = node.value(0).type;
  Composer c(node.builder());
  const ValueIndex x = c.cast(node.input(0), type == DataType::kFloat64 ? type : DataType::kFloat32);
  const ValueIndex squares = c.reduce(Function::kMean, c.mul(x, x), dimensions_from(axis, node.rank(0)));
  const ValueIndex root = c.unary(Function::kSqrt, c.linear(squares, 1, node.real("epsilon", 1e-5)));
  const ValueIndex normalized = c.cast(c.div(x, root), node.value(1).type);
  return c.finish(node, c.mul(normalized, node.input(1)));
}

// Groups of channels, each normalised by itself. Scale and bias are those of
// channels, and until opset 21 those of groups.
Status group_normalization(NodeTranslation& node) {
  const Shape shape = node.shape(0);
  const int64_t groups = node.integer("num_groups", 0);
  if (shape.size() < 2 || groups < 1 || shape[0] < 1 || shape[1] % groups != 0) {
    return Status::invalid_argument(fmt::format("{} groups do not divide {}", groups, to_string(shape)));
  }
  Composer c(node.builder());
  const int64_t together = shape[1] / groups;
  int64_t elements = 1;
  for (size_t i = 2; i < shape.size(); ++i) elements *= shape[i];
  const ValueIndex grouped = c.reshape(node.input(0), {shape[0], groups, together, elements});
  const auto parameter = [&](size_t i) {
    if (node.shape(i) != Shape{groups}) return c.reshape(node.input(i), {groups, together, 1});
    return c.expand(c.reshape(node.input(i), {groups, 1, 1}), {groups, together, 1});
  };
  Attributes attributes;
  attributes.set("axis", int64_t{2});
  attributes.set("epsilon", node.real("epsilon", 1e-5));
  const ValueIndex normalized =
      c.emit(OperatorKind::kLayerNorm, {grouped, parameter(1), parameter(2)}, std::move(attributes));
  return c.finish(node, c.reshape(normalized, shape));
}

// (x - mean) / (deviation + tiny)
Status mean_variance_normalization(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, node.axes(node.integers("axes", {0, 2, 3}), node.rank(0)));
  Composer c(node.builder());
  const ValueIndex difference = c.sub(node.input(0), c.reduce(Function::kMean, node.input(0), axes));
  const ValueIndex variance = c.reduce(Function::kMean, c.mul(difference, difference), axes);
  return c.finish(node, c.div(difference, c.linear(c.unary(Function::kSqrt, variance), 1, 1e-9)));
}

// Divided by the 1- or 2-norm along one dimension; where that is zero, zero.
Status norm_normalization(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(node.integer("axis", -1), node.rank(0)));
  const int64_t p = node.integer("p", 2);
  if (p != 1 && p != 2) return Status::invalid_argument(fmt::format("p is {}, neither 1 nor 2", p));
  Composer c(node.builder());
  const ValueIndex x = node.input(0);
  const ValueIndex norm = c.reduce(p == 1 ? Function::kL1 : Function::kL2, x, {axis});
  const ValueIndex nothing = c.binary(Function::kEqual, norm, c.like(norm, 0));
  return c.finish(node, c.div(x, c.where(nothing, c.like(norm, 1), norm)));
}

Status local_response_normalization(NodeTranslation& node) {
  if (node.rank(0) < 3) return Status::invalid_argument("the input has no spatial dimension");
  const int64_t size = node.integer("size", 0);
  if (size < 1) return Status::invalid_argument("size is missing or not positive");
  Attributes attributes;
  attributes.set("size", size);
  attributes.set("alpha", node.real("alpha", 1e-4));
  attributes.set("beta", node.real("beta", 0.75));
  attributes.set("bias", node.real("bias", 1));
  return node.finish(node.builder().emit(OperatorKind::kLrn, {node.input(0)}, std::move(attributes)));
}

// Before opset 13 the dimensions from `axis` on were one; since then only
// dimension `axis` counts.
Status softmax(NodeTranslation& node) {
  GraphBuilder& builder = node.builder();
  const bool flattens = node.opset() < 13;
  const Shape shape = node.shape(0);
  if (shape.empty()) return Status::invalid_argument("a scalar has no dimension");
  FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(node.integer("axis", flattens ? 1 : -1), node.rank(0)));
  ValueIndex x = node.input(0);
  if (flattens && axis + 1 != node.rank(0)) {
    Shape flat(shape.begin(), shape.begin() + axis);
    int64_t extent = 1;
    for (size_t i = static_cast<size_t>(axis); i < shape.size(); ++i) extent *= shape[i];
    flat.push_back(extent);
    FOLIOT_ASSIGN_OR_RETURN(x, builder.reshape(x, std::move(flat)));
  }
  Attributes attributes;
  attributes.set("axis", axis);
  attributes.set("log", int64_t{node.type() == "LogSoftmax"});
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex result, builder.emit(OperatorKind::kSoftmax, {x}, std::move(attributes)));
  return node.finish(builder.reshape(result, shape));
}

constexpr OnnxOperator kNormalizationOperators[] = {
    {"BatchNormalization", 5, 5, batch_normalization},
    {"LayerNormalization", 2, 3, layer_normalization},
    {"InstanceNormalization", 3, 3, instance_normalization},
    {"RMSNormalization", 2, 2, root_mean_square_normalization},
    // Of onnxruntime, which writes it into ONNX's own domain.
    {"SimplifiedLayerNormalization", 2, 2, root_mean_square_normalization},
    {"GroupNormalization", 3, 3, group_normalization},
    {"MeanVarianceNormalization", 1, 1, mean_variance_normalization},
    {"LpNormalization", 1, 1, norm_normalization},
    {"LRN", 1, 1, local_response_normalization},
    {"Softmax", 1, 1, softmax},
    {"LogSoftmax", 1, 1, softmax},
};

}  // namespace

std::span<const OnnxOperator> normalization_operators() { return kNormalizationOperators; }

}  // namespace foliot
