#include "engine/compiler/graph_builder.h"

#include <algorithm>
#include <utility>

#include "engine/compiler/evaluate.h"

namespace foliot {
namespace {

// Broadcasting a constant to more than this is left to the device: it would
// become weights of its own for every batch size.
constexpr uint64_t kExpandedBytesMax = uint64_t{64} << 10;
// Constants beyond this are computed when serving rather than stored.
constexpr uint64_t kFoldedBytesMax = uint64_t{2} << 30;

}  // namespace

ValueIndex GraphBuilder::add_value(ValueType type) {
  Value value;
  value.name = name_;
  value.type = type.type;
  value.shape = std::move(type.shape);
  graph_.values.push_back(std::move(value));
  return static_cast<ValueIndex>(graph_.values.size() - 1);
}

ValueIndex GraphBuilder::add_input(std::string name, ValueType type) {
  set_name(std::move(name));
  const ValueIndex index = add_value(std::move(type));
  graph_.inputs.push_back(index);
  return index;
}

ValueIndex GraphBuilder::add_constant(Constant constant) {
  constant = pool_.intern(std::move(constant));
  const ValueIndex index = add_value({constant.type, std::move(constant.shape)});
  graph_.values[index].constant = std::move(constant.bytes);
  return index;
}

Constant GraphBuilder::constant(ValueIndex index) const {
  const Value& known = value(index);
  FOLIOT_CHECK(known.is_constant());
  return {known.type, known.shape, known.constant};
}

std::optional<Constant> GraphBuilder::fold(OperatorKind kind, const std::vector<ValueIndex>& inputs,
                                           const Attributes& attributes, const ValueType& type) const {
  const bool known =
      std::ranges::all_of(inputs, [&](ValueIndex input) { return input != kNoValue && value(input).is_constant(); });
  const uint64_t bytes = byte_size(type.type, type.shape);
  if (!known || bytes > kFoldedBytesMax) return std::nullopt;
  if (kind == OperatorKind::kExpand && bytes > kExpandedBytesMax) return std::nullopt;
  std::vector<Constant> operands;
  operands.reserve(inputs.size());
  for (ValueIndex input : inputs) operands.push_back(constant(input));
  return evaluate(kind, operands, attributes, type);
}

Result<ValueIndex> GraphBuilder::widened(ValueIndex x, DataType wide) {
  const auto found = wide_.find(x);
  return found != wide_.end() && value(found->second).type == wide ? found->second : cast(x, wide);
}

Result<ValueIndex> GraphBuilder::emit(OperatorKind kind, std::vector<ValueIndex> inputs, Attributes attributes,
                                      std::optional<ValueType> type) {
  std::optional<DataType> narrow, wide;
  for (ValueIndex& input : inputs) {
    if (input == kNoValue) continue;
    const DataType given = value(input).type;
    const DataType computed = compute_type(kind, given);
    if (computed == given) continue;
    narrow = given;
    wide = computed;
    FOLIOT_ASSIGN_OR_RETURN(input, widened(input, computed));
  }
  if (!narrow) return emit_computed(kind, std::move(inputs), std::move(attributes), std::move(type));
  if (type && type->type == *narrow) type->type = *wide;
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex result,
                          emit_computed(kind, std::move(inputs), std::move(attributes), std::move(type)));
  if (value(result).type != *wide) return result;
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex narrowed, cast(result, *narrow));
  wide_[narrowed] = result;
  return narrowed;
}

Result<ValueIndex> GraphBuilder::emit_computed(OperatorKind kind, std::vector<ValueIndex> inputs, Attributes attributes,
                                               std::optional<ValueType> type) {
  if (!type) {
    std::vector<const Value*> operands;
    operands.reserve(inputs.size());
    for (ValueIndex input : inputs) operands.push_back(input == kNoValue ? nullptr : &value(input));
    FOLIOT_ASSIGN_OR_RETURN(type, infer(kind, operands, attributes));
  }
  FOLIOT_RETURN_IF_ERROR(check_shape(type->type, type->shape));
  // What has no elements needs no operator, and devices need not think of it.
  if (element_count(type->shape) == 0) return add_constant(make_constant(type->type, type->shape, {}));
  if (auto constant = fold(kind, inputs, attributes, *type)) return add_constant(std::move(*constant));
  const ValueIndex output = add_value(std::move(*type));
  Node node;
  node.kind = kind;
  node.name = name_;
  node.inputs = std::move(inputs);
  node.outputs = {output};
  node.attributes = std::move(attributes);
  graph_.nodes.push_back(std::move(node));
  return output;
}

Result<ValueIndex> GraphBuilder::reshape(ValueIndex x, Shape shape) {
  if (value(x).shape == shape) return x;
  FOLIOT_RETURN_IF_ERROR(check_shape(value(x).type, shape));
  if (element_count(shape) != element_count(value(x).shape)) {
    return Status::invalid_argument("'" + value(x).name + "' of shape " + to_string(value(x).shape) +
                                    " cannot be reshaped to " + to_string(shape));
  }
  return emit(OperatorKind::kReshape, {x}, {}, ValueType{value(x).type, std::move(shape)});
}

Result<ValueIndex> GraphBuilder::transpose(ValueIndex x, std::vector<int64_t> permutation) {
  if (std::ranges::is_sorted(permutation)) return x;
  Attributes attributes;
  attributes.set("permutation", std::move(permutation));
  return emit(OperatorKind::kTranspose, {x}, std::move(attributes));
}

Result<ValueIndex> GraphBuilder::expand(ValueIndex x, Shape shape) {
  if (value(x).shape == shape) return x;
  return emit(OperatorKind::kExpand, {x}, {}, ValueType{value(x).type, std::move(shape)});
}

Result<ValueIndex> GraphBuilder::cast(ValueIndex x, DataType type) {
  if (value(x).type == type) return x;
  return emit(OperatorKind::kCast, {x}, {}, ValueType{type, value(x).shape});
}

Result<ValueIndex> GraphBuilder::unary(Function function, ValueIndex x, double alpha, double beta) {
  Attributes attributes;
  if (has_parameters(function)) {
    attributes.set("alpha", alpha);
    attributes.set("beta", beta);
  }
  attributes.set("function", function);
  return emit(OperatorKind::kUnary, {x}, std::move(attributes));
}

Result<ValueIndex> GraphBuilder::binary(Function function, ValueIndex a, ValueIndex b) {
  Attributes attributes;
  attributes.set("function", function);
  return emit(OperatorKind::kBinary, {a, b}, std::move(attributes));
}

}  // namespace foliot
