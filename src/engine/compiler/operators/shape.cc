// Operators that speak of shapes, and constants.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/compiler/operators/onnx_operator.h"

namespace foliot {
namespace {

constexpr uint64_t kConstantBytesMax = uint64_t{2} << 30;

Status shape_of(NodeTranslation& node) {
  const Shape shape = node.shape(0);
  const int64_t rank = node.rank(0);
  const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t first = clamp(node.integer("start", 0));
  const int64_t last = std::max(first, clamp(node.integer("end", rank)));
  const std::vector<int64_t> extents(shape.begin() + first, shape.begin() + last);
  node.set_output(0, node.builder().add_constant(make_constant({last - first}, extents)));
  return {};
}

Status size_of_tensor(NodeTranslation& node) {
  const auto count = static_cast<int64_t>(element_count(node.shape(0)));
  node.set_output(0, node.builder().add_constant(make_constant({}, std::span(&count, 1))));
  return {};
}

// Replaces the fixed batch size that the exporter wrote into the target by the
// one that is being compiled, where the element count says that it is meant.
void rebatch_target(Rebatch rebatch, const Shape& shape, Shape* target) {
  if (!rebatch.is_needed() || target->empty() || shape.empty()) return;
  int64_t& leading = target->front();
  const bool open = std::ranges::find(*target, -1) != target->end();
  if (open) {
    if (leading == rebatch.from && shape.front() == rebatch.to) leading = rebatch.to;
    return;
  }
  const uint64_t elements = element_count(shape);
  const uint64_t meant = element_count(*target);
  if (leading % rebatch.from == 0 && meant != elements &&
      meant * static_cast<uint64_t>(rebatch.to) == elements * static_cast<uint64_t>(rebatch.from)) {
    leading = leading / rebatch.from * rebatch.to;
  }
}

// Puts in the one entry that may be left open.
Status resolve_open_extent(const Shape& shape, Shape* target) {
  int64_t known = 1;
  int64_t* open = nullptr;
  for (int64_t& extent : *target) {
    if (extent < 0 && open != nullptr) return Status::invalid_argument("more than one entry of the shape is -1");
    if (extent < 0) open = &extent;
    if (extent >= 0 && __builtin_mul_overflow(known, extent, &known)) {
      return Status::invalid_argument("the shape is impossible");
    }
  }
  if (open == nullptr) return {};
  const auto elements = static_cast<int64_t>(element_count(shape));
  if (known == 0 || elements % known != 0) {
    return Status::invalid_argument(fmt::format("{} cannot be reshaped to {}", to_string(shape), to_string(*target)));
  }
  *open = elements / known;
  return {};
}

Status reshape(NodeTranslation& node) {
  const Shape shape = node.shape(0);
  FOLIOT_ASSIGN_OR_RETURN(Shape target, node.integers_of(1, "the shape"));
  const bool zero_is_kept = node.integer("allowzero", 0) == 0;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] < -1) return Status::invalid_argument(fmt::format("the shape {} is impossible", to_string(target)));
    if (target[i] != 0 || !zero_is_kept) continue;
    if (i >= shape.size()) return Status::invalid_argument("a 0 in the shape stands for no dimension of the input");
    target[i] = shape[i];
  }
  FOLIOT_RETURN_IF_ERROR(check_shape(node.value(0).type, [&] {
    Shape known = target;
    std::ranges::replace(known, -1, 1);
    return known;
  }()));
  if (!node.value(0).is_constant()) rebatch_target(node.rebatch(), shape, &target);
  FOLIOT_RETURN_IF_ERROR(resolve_open_extent(shape, &target));
  return node.finish(node.builder().reshape(node.input(0), std::move(target)));
}

Status flatten(NodeTranslation& node) {
  const Shape shape = node.shape(0);
  int64_t axis = node.integer("axis", 1);
  if (axis != node.rank(0)) {
    FOLIOT_ASSIGN_OR_RETURN(axis, node.axis(axis, std::max<int64_t>(node.rank(0), 1)));
  }
  Shape target{1, 1};
  for (size_t i = 0; i < shape.size(); ++i) target[static_cast<int64_t>(i) < axis ? 0 : 1] *= shape[i];
  return node.finish(node.builder().reshape(node.input(0), std::move(target)));
}

// An attribute before opset 13, an operand since.
Result<std::vector<int64_t>> read_axes(NodeTranslation& node) {
  if (node.has_input(1)) return node.integers_of(1, "'axes'");
  return node.integers("axes");
}

Status squeeze(NodeTranslation& node) {
  const Shape shape = node.shape(0);
  FOLIOT_ASSIGN_OR_RETURN(std::vector<int64_t> axes, read_axes(node));
  FOLIOT_ASSIGN_OR_RETURN(axes, node.axes(axes, node.rank(0)));
  Shape target;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool named = std::ranges::binary_search(axes, static_cast<int64_t>(i));
    if (named && shape[i] != 1) {
      return Status::invalid_argument(fmt::format("dimension {} of {} is not 1", i, to_string(shape)));
    }
    if (!named && !(axes.empty() && shape[i] == 1)) target.push_back(shape[i]);
  }
  return node.finish(node.builder().reshape(node.input(0), std::move(target)));
}

Status unsqueeze(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(std::vector<int64_t> axes, read_axes(node));
  if (axes.size() > 64) return Status::invalid_argument("too many dimensions");
  FOLIOT_ASSIGN_OR_RETURN(axes, node.axes(axes, node.rank(0) + static_cast<int64_t>(axes.size())));
  Shape target = node.shape(0);
  for (int64_t axis : axes) target.insert(target.begin() + axis, 1);
  return node.finish(node.builder().reshape(node.input(0), std::move(target)));
}

Status constant(NodeTranslation& node) {
  GraphBuilder& builder = node.builder();
  if (node.has_attribute("value_float")) {
    node.set_output(0, builder.add_scalar(DataType::kFloat32, node.real("value_float", 0)));
  } else if (node.has_attribute("value_int")) {
    const int64_t value = node.integer("value_int", 0);
    node.set_output(0, builder.add_constant(make_constant({}, std::span(&value, 1))));
  } else if (node.has_attribute("value_floats")) {
    const std::vector<float> values = node.reals("value_floats");
    node.set_output(0, builder.add_constant(make_constant({static_cast<int64_t>(values.size())}, values)));
  } else if (node.has_attribute("value_ints")) {
    const std::vector<int64_t> values = node.integers("value_ints");
    node.set_output(0, builder.add_constant(make_constant({static_cast<int64_t>(values.size())}, values)));
  } else {
    const char* name = node.has_attribute("sparse_value") ? "sparse_value" : "value";
    FOLIOT_ASSIGN_OR_RETURN(const Constant value, node.tensor(name));
    node.set_output(0, builder.add_constant(value));
  }
  return {};
}

Status constant_of_shape(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const Shape shape, node.integers_of(0, "the shape"));
  Constant value = make_scalar(DataType::kFloat32, 0);
  if (node.has_attribute("value")) {
    FOLIOT_ASSIGN_OR_RETURN(value, node.tensor("value"));
  }
  const size_t width = size_of(value.type);
  if (value.bytes->size() != width) return Status::invalid_argument("the value is not one element");
  FOLIOT_RETURN_IF_ERROR(check_shape(value.type, shape));
  if (byte_size(value.type, shape) > kConstantBytesMax) {
    return Status::resource_exhausted(fmt::format("a constant of shape {} is too large", to_string(shape)));
  }
  std::vector<std::byte> bytes(byte_size(value.type, shape));
  for (size_t i = 0; i < bytes.size(); i += width) std::memcpy(bytes.data() + i, value.bytes->data(), width);
  node.set_output(0, node.builder().add_constant(make_constant(value.type, shape, std::move(bytes))));
  return {};
}

Status range(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const Constant start, node.constant(0, "'start'"));
  FOLIOT_ASSIGN_OR_RETURN(const Constant limit, node.constant(1, "'limit'"));
  FOLIOT_ASSIGN_OR_RETURN(const Constant delta, node.constant(2, "'delta'"));
  for (const Constant* bound : {&start, &limit, &delta}) {
    if (element_count(bound->shape) != 1) return Status::invalid_argument("a bound is not a scalar");
    if (bound->type != start.type) return Status::invalid_argument("the bounds differ in type");
  }
  const double first = to_doubles(start)[0];
  const double step = to_doubles(delta)[0];
  const double count = std::max(0.0, std::ceil((to_doubles(limit)[0] - first) / step));
  if (!(count <= 1 << 26)) return Status::invalid_argument("the range is too long or endless");
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<double>(i) * step;
  node.set_output(0,
                  node.builder().add_constant(from_doubles(start.type, {static_cast<int64_t>(values.size())}, values)));
  return {};
}

constexpr OnnxOperator kShapeOperators[] = {
    {"Shape", 1, 1, shape_of},    {"Size", 1, 1, size_of_tensor},
    {"Reshape", 2, 2, reshape},   {"Flatten", 1, 1, flatten},
    {"Squeeze", 1, 2, squeeze},   {"Unsqueeze", 1, 2, unsqueeze},
    {"Constant", 0, 0, constant}, {"ConstantOfShape", 1, 1, constant_of_shape},
    {"Range", 3, 3, range},
};

}  // namespace

std::span<const OnnxOperator> shape_operators() { return kShapeOperators; }

}  // namespace foliot
