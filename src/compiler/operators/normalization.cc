// Normalisations and softmax.
#include <fmt/format.h>

#include <cmath>

#include "compiler/operators/onnx_operator.h"

namespace foliot {
namespace {

// Inference: scale * (x - mean) / sqrt(variance + epsilon) + bias, as x * factor + shift.
Status batch_normalization(NodeTranslation& node) {
  if (node.integer("training_mode", 0) != 0) return Status::unimplemented("training_mode is not supported");
  if (node.wants_output(1)) return Status::unimplemented("outputs of training are not supported");
  if (node.rank(0) < 2) return Status::invalid_argument("the input has no channels");
  GraphBuilder& builder = node.builder();
  const ValueIndex scale = node.input(1), bias = node.input(2), mean = node.input(3), variance = node.input(4);
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex spread, builder.unary("linear", variance, 1, node.real("epsilon", 1e-5)));
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex deviation, builder.unary("sqrt", spread));
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex factor, builder.binary("div", scale, deviation));
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex centre, builder.binary("mul", mean, factor));
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex shift, builder.binary("sub", bias, centre));
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

Status layer_normalization(NodeTranslation& node) {
  if (node.wants_output(1) || node.wants_output(2)) {
    return Status::unimplemented("the mean and deviation outputs are not supported");
  }
  GraphBuilder& builder = node.builder();
  const Shape shape = node.shape(0);
  FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(node.integer("axis", -1), node.rank(0)));
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

// Every channel of every row by itself: a layer norm over its elements, then
// scale and bias per channel.
Status instance_normalization(NodeTranslation& node) {
  GraphBuilder& builder = node.builder();
  const Shape shape = node.shape(0);
  if (shape.size() < 3) return Status::invalid_argument("the input has no spatial dimension");
  int64_t elements = 1;
  for (size_t i = 2; i < shape.size(); ++i) elements *= shape[i];
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex flat, builder.reshape(node.input(0), {shape[0], shape[1], elements}));
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex normalized, layer_norm(builder, {flat}, 2, node.real("epsilon", 1e-5)));
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex scaled,
                          builder.emit(OperatorKind::kAffine, {normalized, node.input(1), node.input(2)}, {}));
  return node.finish(builder.reshape(scaled, shape));
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

constexpr OnnxOperator kOperators[] = {
    {"BatchNormalization", 5, 5, batch_normalization},
    {"LayerNormalization", 2, 3, layer_normalization},
    {"InstanceNormalization", 3, 3, instance_normalization},
    {"LRN", 1, 1, local_response_normalization},
    {"Softmax", 1, 1, softmax},
    {"LogSoftmax", 1, 1, softmax},
};

}  // namespace

std::span<const OnnxOperator> normalization_operators() { return kOperators; }

}  // namespace foliot
