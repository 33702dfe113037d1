#include "engine/compiler/operators/composer.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace foliot {
namespace {

constexpr const char* kTooFewDimensions = "an operand has another number of dimensions than this operator needs";

}  // namespace

void Composer::require(bool condition, const char* otherwise) {
  if (!failed() && !condition) status_ = Status::invalid_argument(otherwise);
}

Status Composer::finish(NodeTranslation& node, ValueIndex result, size_t output) {
  if (!failed() && output < node.output_count()) node.set_output(output, result);
  return status_;
}

ValueIndex Composer::keep(Result<ValueIndex> result) {
  if (result.ok()) return *result;
  status_ = result.status();
  return kNoValue;
}

bool Composer::has_dimension(ValueIndex x, int64_t axis) {
  require(axis >= 0 && axis < rank(x), kTooFewDimensions);
  return !failed();
}

Shape Composer::shape(ValueIndex x) const { return failed() ? Shape(16, 1) : builder_.value(x).shape; }

DataType Composer::type(ValueIndex x) const { return failed() ? DataType::kFloat32 : builder_.value(x).type; }

ValueIndex Composer::constant(Constant constant) {
  return failed() ? kNoValue : builder_.add_constant(std::move(constant));
}

ValueIndex Composer::integers(const std::vector<int64_t>& values, Shape shape) {
  return constant(make_constant(std::move(shape), values));
}

ValueIndex Composer::positions(int64_t count, size_t axis, size_t rank) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  Shape shape(rank, 1);
  shape[axis] = count;
  return integers(values, std::move(shape));
}

ValueIndex Composer::unary(Function function, ValueIndex x, double alpha, double beta) {
  return failed() ? kNoValue : keep(builder_.unary(function, x, alpha, beta));
}

ValueIndex Composer::binary(Function function, ValueIndex a, ValueIndex b) {
  return failed() ? kNoValue : keep(builder_.binary(function, a, b));
}

ValueIndex Composer::where(ValueIndex condition, ValueIndex a, ValueIndex b) {
  return emit(OperatorKind::kWhere, {condition, a, b}, {});
}

ValueIndex Composer::cast(ValueIndex x, DataType type) { return failed() ? kNoValue : keep(builder_.cast(x, type)); }

ValueIndex Composer::reinterpret(ValueIndex x, DataType type) {
  return emit(OperatorKind::kReshape, {x}, {}, ValueType{type, shape(x)});
}

ValueIndex Composer::reshape(ValueIndex x, Shape shape) {
  return failed() ? kNoValue : keep(builder_.reshape(x, std::move(shape)));
}

ValueIndex Composer::transpose(ValueIndex x, std::vector<int64_t> permutation) {
  require(failed() || permutation.size() == shape(x).size(), kTooFewDimensions);
  return failed() ? kNoValue : keep(builder_.transpose(x, std::move(permutation)));
}

ValueIndex Composer::expand(ValueIndex x, Shape shape) {
  if (failed()) return kNoValue;
  const Result<Shape> wide = broadcast(builder_.value(x).shape, shape);
  if (wide.ok() && *wide == shape) return keep(builder_.expand(x, std::move(shape)));
  return keep(Status::invalid_argument("'" + builder_.value(x).name + "' of shape " +
                                       to_string(builder_.value(x).shape) + " cannot be expanded to " +
                                       to_string(shape)));
}

ValueIndex Composer::concat(std::vector<ValueIndex> parts, int64_t axis) {
  if (parts.size() == 1) return parts[0];
  if (!has_dimension(parts[0], axis)) return kNoValue;
  Attributes attributes;
  attributes.set("axis", axis);
  return emit(OperatorKind::kConcat, std::move(parts), std::move(attributes));
}

ValueIndex Composer::slice(ValueIndex x, int64_t axis, int64_t start, int64_t count, int64_t step) {
  if (!has_dimension(x, axis)) return kNoValue;
  Shape extents = shape(x);
  const auto dimension = static_cast<size_t>(axis);
  const int64_t last = start + (count - 1) * step;
  if (count < 0 || (count > 0 && (std::min(start, last) < 0 || std::max(start, last) >= extents[dimension]))) {
    return keep(Status::invalid_argument("a part of '" + builder_.value(x).name + "' lies beyond its end"));
  }
  if (extents[dimension] == count && step == 1) return x;
  std::vector<int64_t> starts(extents.size(), 0), steps(extents.size(), 1);
  starts[dimension] = start;
  steps[dimension] = step;
  extents[dimension] = count;
  Attributes attributes;
  attributes.set("starts", std::move(starts));
  attributes.set("steps", std::move(steps));
  return emit(OperatorKind::kSlice, {x}, std::move(attributes), ValueType{type(x), std::move(extents)});
}

ValueIndex Composer::pad(ValueIndex x, std::vector<int64_t> pads, double value) {
  Shape extents = shape(x);
  if (failed() || std::ranges::all_of(pads, [](int64_t p) { return p == 0; })) return failed() ? kNoValue : x;
  if (pads.size() != 2 * extents.size()) return keep(Status::invalid_argument(kTooFewDimensions));
  for (size_t i = 0; i < extents.size(); ++i) extents[i] += pads[i] + pads[extents.size() + i];
  Attributes attributes;
  attributes.set("pads", std::move(pads));
  attributes.set("mode", std::string("constant"));
  attributes.set("value", value);
  return emit(OperatorKind::kPad, {x}, std::move(attributes), ValueType{type(x), std::move(extents)});
}

ValueIndex Composer::gather(ValueIndex x, ValueIndex indices, int64_t axis) {
  if (!has_dimension(x, axis)) return kNoValue;
  Attributes attributes;
  attributes.set("axis", axis);
  return emit(OperatorKind::kGather, {x, indices}, std::move(attributes));
}

ValueIndex Composer::gather_elements(ValueIndex x, ValueIndex indices, int64_t axis) {
  if (!has_dimension(x, axis)) return kNoValue;
  Attributes attributes;
  attributes.set("axis", axis);
  return emit(OperatorKind::kGatherElements, {x, cast(indices, DataType::kInt64)}, std::move(attributes));
}

ValueIndex Composer::scatter_elements(ValueIndex x, ValueIndex indices, ValueIndex updates, int64_t axis,
                                      Function reduction) {
  if (!has_dimension(x, axis)) return kNoValue;
  Attributes attributes;
  attributes.set("axis", axis);
  attributes.set("reduction", reduction);
  return emit(OperatorKind::kScatterElements, {x, cast(indices, DataType::kInt64), updates}, std::move(attributes));
}

ValueIndex Composer::reduce(Function function, ValueIndex x, std::vector<int64_t> axes, bool keep) {
  std::ranges::sort(axes);
  if (!axes.empty() && !has_dimension(x, axes.back())) return kNoValue;
  Attributes attributes;
  attributes.set("function", function);
  attributes.set("axes", std::move(axes));
  attributes.set("keep_dims", int64_t{keep});
  return emit(OperatorKind::kReduce, {x}, std::move(attributes));
}

ValueIndex Composer::arg_max(ValueIndex x, int64_t axis, bool keep) {
  if (!has_dimension(x, axis)) return kNoValue;
  Attributes attributes;
  attributes.set("axis", axis);
  attributes.set("keep_dims", int64_t{keep});
  attributes.set("select_last", int64_t{0});
  attributes.set("largest", int64_t{1});
  return emit(OperatorKind::kArgReduce, {x}, std::move(attributes));
}

ValueIndex Composer::cumulative(Function function, ValueIndex x, int64_t axis, bool exclusive, bool reverse) {
  Attributes attributes;
  attributes.set("function", function);
  attributes.set("axis", axis);
  attributes.set("exclusive", int64_t{exclusive});
  attributes.set("reverse", int64_t{reverse});
  return emit(OperatorKind::kCumulative, {x}, std::move(attributes));
}

ValueIndex Composer::matmul(ValueIndex a, ValueIndex b, bool transpose_a, bool transpose_b, double alpha) {
  Attributes attributes;
  attributes.set("transpose_a", int64_t{transpose_a});
  attributes.set("transpose_b", int64_t{transpose_b});
  attributes.set("alpha", alpha);
  return emit(OperatorKind::kMatMul, {a, b}, std::move(attributes));
}

ValueIndex Composer::softmax(ValueIndex x, int64_t axis, bool log) {
  if (!has_dimension(x, axis)) return kNoValue;
  Attributes attributes;
  attributes.set("axis", axis);
  attributes.set("log", int64_t{log});
  return emit(OperatorKind::kSoftmax, {x}, std::move(attributes));
}

ValueIndex Composer::emit(OperatorKind kind, std::vector<ValueIndex> inputs, Attributes attributes,
                          std::optional<ValueType> type) {
  if (failed()) return kNoValue;
  return keep(builder_.emit(kind, std::move(inputs), std::move(attributes), std::move(type)));
}

}  // namespace foliot
