#include "engine/compiler/value_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "engine/compiler/constant.h"

namespace foliot {
namespace {

// No tensor of a model that can be served comes near it.
constexpr uint64_t kValueBytesMax = uint64_t{1} << 36;
// Extents up to here can be added and multiplied by strides without overflow.
constexpr int64_t kExtentMax = int64_t{1} << 31;

using Inputs = std::span<const Value* const>;

template <typename... Arguments>
Status wrong(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return Status::invalid_argument(fmt::format(format, std::forward<Arguments>(arguments)...));
}

Status require_float(const Value& value) {
  if (value.type == DataType::kFloat32) return {};
  return Status::unimplemented(
      fmt::format("operand '{}' is {}; only FP32 is supported here", value.name, to_string(value.type)));
}

Status require_same_type(const Value& a, const Value& b) {
  if (a.type == b.type) return {};
  return wrong("operands '{}' ({}) and '{}' ({}) differ in type", a.name, to_string(a.type), b.name, to_string(b.type));
}

Result<Shape> slide(const Shape& input, const Shape& kernel, const Attributes& attributes, bool extra_pads) {
  const auto& strides = attributes.integers("strides");
  const auto& dilations = attributes.integers("dilations");
  const auto& pads = attributes.integers("pads");
  const size_t rank = kernel.size();
  Shape shape{input[0], input[1]};
  for (size_t i = 0; i < rank; ++i) {
    const int64_t padding = pads[i] + pads[rank + i] + (extra_pads ? attributes.integers("extra_pads")[i] : 0);
    FOLIOT_ASSIGN_OR_RETURN(const int64_t extent,
                            window_extent(input[2 + i], kernel[i], strides[i], dilations[i], padding));
    shape.push_back(extent);
  }
  return shape;
}

Result<ValueType> infer_convolution(Inputs inputs, const Attributes& attributes) {
  const Value& x = *inputs[0];
  const Value& w = *inputs[1];
  FOLIOT_RETURN_IF_ERROR(require_float(x));
  FOLIOT_RETURN_IF_ERROR(require_float(w));
  const int64_t groups = attributes.integer("groups");
  if (x.shape[1] != w.shape[1] * groups || w.shape[0] % groups != 0) {
    return wrong("input {} and weights {} do not fit with {} groups", to_string(x.shape), to_string(w.shape), groups);
  }
  const Shape kernel(w.shape.begin() + 2, w.shape.end());
  FOLIOT_ASSIGN_OR_RETURN(Shape shape, slide(x.shape, kernel, attributes, false));
  shape[1] = w.shape[0];
  if (inputs.size() > 2 && inputs[2] != nullptr && inputs[2]->shape != Shape{w.shape[0]}) {
    return wrong("bias {} does not fit {} output channels", to_string(inputs[2]->shape), w.shape[0]);
  }
  return ValueType{x.type, std::move(shape)};
}

bool is_product_type(DataType type) {
  return type == DataType::kFloat32 || type == DataType::kFloat64 || type == DataType::kInt32 ||
         type == DataType::kInt64;
}

Result<ValueType> infer_matmul(Inputs inputs, const Attributes& attributes) {
  const Value& a = *inputs[0];
  const Value& b = *inputs[1];
  FOLIOT_RETURN_IF_ERROR(require_same_type(a, b));
  if (!is_product_type(a.type)) {
    return Status::unimplemented(fmt::format("matrices of {} are not multiplied", to_string(a.type)));
  }
  Shape left = a.shape;
  Shape right = b.shape;
  if (left.size() < 2 || right.size() < 2) return wrong("matrices need two dimensions");
  if (attributes.integer("transpose_a") != 0) std::swap(left[left.size() - 1], left[left.size() - 2]);
  if (attributes.integer("transpose_b") != 0) std::swap(right[right.size() - 1], right[right.size() - 2]);
  const int64_t columns = right.back();
  if (left.back() != right[right.size() - 2]) {
    return wrong("matrices {} and {} cannot be multiplied", to_string(left), to_string(right));
  }
  if (left.back() == 0) return Status::unimplemented("matrices without elements are not multiplied");
  const int64_t rows = left[left.size() - 2];
  left.resize(left.size() - 2);
  right.resize(right.size() - 2);
  FOLIOT_ASSIGN_OR_RETURN(Shape shape, broadcast(left, right));
  shape.push_back(rows);
  shape.push_back(columns);
  if (inputs.size() > 2 && inputs[2] != nullptr && inputs[2]->shape != Shape{columns}) {
    return wrong("bias {} does not fit {} columns", to_string(inputs[2]->shape), columns);
  }
  return ValueType{a.type, std::move(shape)};
}

Result<ValueType> infer_pool(Inputs inputs, const Attributes& attributes, bool extra_pads) {
  FOLIOT_RETURN_IF_ERROR(require_float(*inputs[0]));
  FOLIOT_ASSIGN_OR_RETURN(Shape shape, slide(inputs[0]->shape, attributes.integers("kernel"), attributes, extra_pads));
  return ValueType{inputs[0]->type, std::move(shape)};
}

Result<ValueType> infer_unary(const Value& x, Function function) {
  static constexpr Function kAnyNumber[] = {Function::kAbs,  Function::kNeg,  Function::kRelu,
                                            Function::kSign, Function::kClip, Function::kLinear};
  if (function == Function::kNot) {
    if (x.type != DataType::kBool) return wrong("operand '{}' is not BOOL", x.name);
  } else if (x.type == DataType::kBool || (std::ranges::find(kAnyNumber, function) == std::end(kAnyNumber))) {
    if (x.type != DataType::kFloat64) FOLIOT_RETURN_IF_ERROR(require_float(x));
  }
  return ValueType{x.type, x.shape};
}

Result<ValueType> infer_binary(const Value& a, const Value& b, Function function) {
  static constexpr Function kComparisons[] = {Function::kEqual, Function::kLess, Function::kLessOrEqual,
                                              Function::kGreater, Function::kGreaterOrEqual};
  static constexpr Function kLogic[] = {Function::kAnd, Function::kOr, Function::kXor};
  FOLIOT_RETURN_IF_ERROR(require_same_type(a, b));
  const bool logic = std::ranges::find(kLogic, function) != std::end(kLogic);
  const bool comparison = std::ranges::find(kComparisons, function) != std::end(kComparisons);
  if (logic && a.type != DataType::kBool) return wrong("operand '{}' is not BOOL", a.name);
  if (!logic && !comparison && a.type == DataType::kBool) return wrong("operand '{}' is BOOL", a.name);
  FOLIOT_ASSIGN_OR_RETURN(Shape shape, broadcast(a.shape, b.shape));
  return ValueType{comparison ? DataType::kBool : a.type, std::move(shape)};
}

Result<ValueType> infer_affine(Inputs inputs) {
  const Value& x = *inputs[0];
  FOLIOT_RETURN_IF_ERROR(require_float(x));
  if (x.shape.size() < 2) return wrong("input {} has no channels", to_string(x.shape));
  for (const Value* parameter : {inputs[1], inputs[2]}) {
    FOLIOT_RETURN_IF_ERROR(require_float(*parameter));
    if (parameter->shape != Shape{x.shape[1]}) {
      return wrong("'{}' {} does not fit {} channels", parameter->name, to_string(parameter->shape), x.shape[1]);
    }
  }
  return ValueType{x.type, x.shape};
}

Result<ValueType> infer_layer_norm(Inputs inputs, const Attributes& attributes) {
  const Value& x = *inputs[0];
  FOLIOT_RETURN_IF_ERROR(require_float(x));
  const Shape normalized(x.shape.begin() + attributes.integer("axis"), x.shape.end());
  for (const Value* parameter : inputs.subspan(1)) {
    if (parameter == nullptr) continue;
    FOLIOT_RETURN_IF_ERROR(require_float(*parameter));
    const auto wide = broadcast(parameter->shape, x.shape);
    const bool by_channel = !parameter->shape.empty() && parameter->shape.back() == 1 && wide.ok() && *wide == x.shape;
    if (parameter->shape != normalized && !by_channel) {
      return wrong("'{}' {} fits neither the normalised dimensions {} nor the channels", parameter->name,
                   to_string(parameter->shape), to_string(normalized));
    }
  }
  return ValueType{x.type, x.shape};
}

Shape reduced_shape(const Shape& shape, const std::vector<int64_t>& axes, bool keep_dims) {
  Shape result;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool reduced = std::ranges::find(axes, static_cast<int64_t>(i)) != axes.end();
    if (!reduced) result.push_back(shape[i]);
    if (reduced && keep_dims) result.push_back(1);
  }
  return result;
}

Result<ValueType> infer_concat(Inputs inputs, const Attributes& attributes) {
  const auto axis = static_cast<size_t>(attributes.integer("axis"));
  Shape shape = inputs[0]->shape;
  for (const Value* input : inputs.subspan(1)) {
    FOLIOT_RETURN_IF_ERROR(require_same_type(*inputs[0], *input));
    Shape other = input->shape;
    if (other.size() != shape.size()) return wrong("operands have {} and {} dimensions", shape.size(), other.size());
    const int64_t extent = other[axis];
    other[axis] = shape[axis];
    if (other != shape) {
      return wrong("operands {} and {} cannot be concatenated along dimension {}", to_string(shape),
                   to_string(input->shape), axis);
    }
    shape[axis] += extent;
  }
  return ValueType{inputs[0]->type, std::move(shape)};
}

Result<ValueType> infer_gather(const Value& x, const Value& indices, const Attributes& attributes) {
  if (indices.type != DataType::kInt32 && indices.type != DataType::kInt64) {
    return wrong("indices '{}' are {}, not INT32 or INT64", indices.name, to_string(indices.type));
  }
  const auto axis = attributes.integer("axis");
  Shape shape(x.shape.begin(), x.shape.begin() + axis);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), x.shape.begin() + axis + 1, x.shape.end());
  return ValueType{x.type, std::move(shape)};
}

Result<ValueType> infer_gather_elements(const Value& x, const Value& indices) {
  if (indices.type != DataType::kInt64) return wrong("indices '{}' are not INT64", indices.name);
  if (x.shape.size() != indices.shape.size() || x.shape.empty()) {
    return wrong("indices {} do not fit {}", to_string(indices.shape), to_string(x.shape));
  }
  return ValueType{x.type, indices.shape};
}

Status require_inside(const Shape& inner, const Shape& outer, int64_t axis) {
  for (size_t i = 0; i < inner.size(); ++i) {
    if (static_cast<int64_t>(i) != axis && inner[i] > outer[i]) {
      return wrong("indices {} do not fit {}", to_string(inner), to_string(outer));
    }
  }
  return {};
}

Result<ValueType> infer_scatter_elements(Inputs inputs, int64_t axis) {
  const Value& x = *inputs[0];
  FOLIOT_RETURN_IF_ERROR(require_same_type(x, *inputs[2]));
  FOLIOT_RETURN_IF_ERROR(infer_gather_elements(x, *inputs[1]).status());
  FOLIOT_RETURN_IF_ERROR(require_inside(inputs[1]->shape, x.shape, axis));
  if (inputs[1]->shape != inputs[2]->shape) {
    return wrong("indices {} do not fit updates {}", to_string(inputs[1]->shape), to_string(inputs[2]->shape));
  }
  return ValueType{x.type, x.shape};
}

Result<ValueType> infer_where(Inputs inputs) {
  if (inputs[0]->type != DataType::kBool) return wrong("condition '{}' is not BOOL", inputs[0]->name);
  FOLIOT_RETURN_IF_ERROR(require_same_type(*inputs[1], *inputs[2]));
  FOLIOT_ASSIGN_OR_RETURN(const Shape both, broadcast(inputs[1]->shape, inputs[2]->shape));
  FOLIOT_ASSIGN_OR_RETURN(Shape shape, broadcast(inputs[0]->shape, both));
  return ValueType{inputs[1]->type, std::move(shape)};
}

}  // namespace

Result<int64_t> window_extent(int64_t input, int64_t kernel, int64_t stride, int64_t dilation, int64_t pads) {
  for (int64_t positive : {kernel, stride, dilation}) {
    if (positive < 1 || positive > kExtentMax)
      return wrong("a kernel, stride or dilation of {} is impossible", positive);
  }
  if (pads < 0 || pads > kExtentMax || input > kExtentMax) return wrong("pads of {} are impossible", pads);
  const int64_t reach = input + pads - (kernel - 1) * dilation - 1;
  if (reach < 0) return wrong("a window of {} does not fit an input of {}", (kernel - 1) * dilation + 1, input + pads);
  return reach / stride + 1;
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& extent = result[offset + i];
    if (extent == 1) {
      extent = shorter[i];
    } else if (shorter[i] != 1 && shorter[i] != extent) {
      return wrong("shapes {} and {} cannot be broadcast together", to_string(a), to_string(b));
    }
  }
  return result;
}

Status check_shape(DataType type, const Shape& shape) {
  uint64_t bytes = size_of(type);
  for (int64_t extent : shape) {
    if (extent < 0 || extent > kExtentMax) return wrong("shape {} is impossible", to_string(shape));
    bytes *= static_cast<uint64_t>(std::max<int64_t>(extent, 1));
    if (bytes > kValueBytesMax) return wrong("a tensor of shape {} is too large", to_string(shape));
  }
  return {};
}

namespace {

bool moves_only(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::kConcat:
    case OperatorKind::kSlice:
    case OperatorKind::kTranspose:
    case OperatorKind::kReshape:
    case OperatorKind::kGather:
    case OperatorKind::kGatherElements:
    case OperatorKind::kCast:
    case OperatorKind::kQuantize:
    case OperatorKind::kDequantize:
    case OperatorKind::kWhere:
    case OperatorKind::kExpand:
    case OperatorKind::kReorder: return true;
    default: return false;
  }
}

bool computes_in_float32_only(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::kConvolution:
    case OperatorKind::kConvolutionTranspose:
    case OperatorKind::kMaxPool:
    case OperatorKind::kAveragePool:
    case OperatorKind::kAffine:
    case OperatorKind::kSoftmax:
    case OperatorKind::kLayerNorm:
    case OperatorKind::kLrn:
    case OperatorKind::kRecurrent:
    case OperatorKind::kResize:
    case OperatorKind::kDepthToSpace: return true;
    default: return false;
  }
}

}  // namespace

DataType compute_type(OperatorKind kind, DataType type) {
  if (moves_only(kind)) return type;
  if (type == DataType::kFloat16 || type == DataType::kBfloat16) return DataType::kFloat32;
  if (computes_in_float32_only(kind)) {
    // Integers of up to 16 bits go through float32 and come back as they were.
    const bool exact = is_integer(type) && size_of(type) <= 2;
    return type == DataType::kFloat64 || (exact && kind != OperatorKind::kConvolution) ? DataType::kFloat32 : type;
  }
  if (kind == OperatorKind::kMatMul && (type == DataType::kUint32 || type == DataType::kUint64)) {
    return DataType::kInt64;  // wraps alike
  }
  return type;
}

Result<ValueType> infer(OperatorKind kind, Inputs inputs, const Attributes& attributes) {
  switch (kind) {
    case OperatorKind::kConvolution: return infer_convolution(inputs, attributes);
    case OperatorKind::kMatMul: return infer_matmul(inputs, attributes);
    case OperatorKind::kMaxPool: return infer_pool(inputs, attributes, false);
    case OperatorKind::kAveragePool: return infer_pool(inputs, attributes, true);
    case OperatorKind::kUnary: return infer_unary(*inputs[0], attributes.function());
    case OperatorKind::kBinary: return infer_binary(*inputs[0], *inputs[1], attributes.function());
    case OperatorKind::kAffine: return infer_affine(inputs);
    case OperatorKind::kSoftmax:
    case OperatorKind::kLrn:
      FOLIOT_RETURN_IF_ERROR(require_float(*inputs[0]));
      return ValueType{inputs[0]->type, inputs[0]->shape};
    case OperatorKind::kLayerNorm: return infer_layer_norm(inputs, attributes);
    case OperatorKind::kReduce:
      return ValueType{inputs[0]->type, reduced_shape(inputs[0]->shape, attributes.integers("axes"),
                                                      attributes.integer("keep_dims") != 0)};
    case OperatorKind::kArgReduce:
      return ValueType{DataType::kInt64, reduced_shape(inputs[0]->shape, {attributes.integer("axis")},
                                                       attributes.integer("keep_dims") != 0)};
    case OperatorKind::kConcat: return infer_concat(inputs, attributes);
    case OperatorKind::kTranspose: {
      Shape shape;
      for (int64_t axis : attributes.integers("permutation"))
        shape.push_back(inputs[0]->shape[static_cast<size_t>(axis)]);
      return ValueType{inputs[0]->type, std::move(shape)};
    }
    case OperatorKind::kGather: return infer_gather(*inputs[0], *inputs[1], attributes);
    case OperatorKind::kGatherElements:
      FOLIOT_RETURN_IF_ERROR(infer_gather_elements(*inputs[0], *inputs[1]).status());
      FOLIOT_RETURN_IF_ERROR(require_inside(inputs[1]->shape, inputs[0]->shape, attributes.integer("axis")));
      return infer_gather_elements(*inputs[0], *inputs[1]);
    case OperatorKind::kScatterElements: return infer_scatter_elements(inputs, attributes.integer("axis"));
    case OperatorKind::kCumulative: return ValueType{inputs[0]->type, inputs[0]->shape};
    case OperatorKind::kWhere: return infer_where(inputs);
    case OperatorKind::kConvolutionTranspose:
    case OperatorKind::kBlockMatMul:
    case OperatorKind::kReshape:
    case OperatorKind::kSlice:
    case OperatorKind::kCast:
    case OperatorKind::kQuantize:
    case OperatorKind::kDequantize:
    case OperatorKind::kExpand:
    case OperatorKind::kPad:
    case OperatorKind::kTopK:
    case OperatorKind::kRecurrent:
    case OperatorKind::kTreeEnsemble:
    case OperatorKind::kPairCoupling:
    case OperatorKind::kDecodeJpeg:
    case OperatorKind::kWordPiece:
    case OperatorKind::kAttention:
    case OperatorKind::kResize:
    case OperatorKind::kDepthToSpace:
    case OperatorKind::kReorder: break;
  }
  FOLIOT_CHECK(false);
}

}  // namespace foliot
