// Operators that move elements without computing on them.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/onnx_operator.h"

namespace foliot {
namespace {

Status transpose(NodeTranslation& node) {
  const int64_t rank = node.rank(0);
  std::vector<int64_t> permutation(static_cast<size_t>(rank));
  std::iota(permutation.rbegin(), permutation.rend(), 0);
  permutation = node.integers("perm", std::move(permutation));
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<int64_t> sorted, node.axes(permutation, rank));
  if (static_cast<int64_t>(sorted.size()) != rank) {
    return Status::invalid_argument(fmt::format("perm has {} entries for {} dimensions", sorted.size(), rank));
  }
  for (int64_t& axis : permutation) axis += axis < 0 ? rank : 0;
  return node.finish(node.builder().transpose(node.input(0), std::move(permutation)));
}

// A model that was fixed to one row repeats constants (a class token) once; the
// other rows of the batch need them, too.
Result<ValueIndex> rebatched_operand(NodeTranslation& node, size_t i, size_t axis, int64_t rows) {
  Shape shape = node.shape(i);
  const Rebatch rebatch = node.rebatch();
  const bool missing = rebatch.is_needed() && axis != 0 && rows == rebatch.to && shape[0] == 1 && rebatch.from == 1;
  if (!missing) return node.input(i);
  shape[0] = rows;
  return node.builder().expand(node.input(i), std::move(shape));
}

Status concatenation(NodeTranslation& node) {
  int64_t rows = 0;
  for (size_t i = 0; i < node.input_count(); ++i) {
    if (!node.has_input(i)) return Status::invalid_argument("an operand is missing");
    if (node.rank(i) == 0) return Status::invalid_argument("scalars cannot be concatenated");
    rows = std::max(rows, node.shape(i)[0]);
  }
  FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(node.integer("axis", 0), node.rank(0)));
  std::vector<ValueIndex> inputs;
  for (size_t i = 0; i < node.input_count(); ++i) {
    FOLIOT_ASSIGN_OR_RETURN(const ValueIndex operand, rebatched_operand(node, i, static_cast<size_t>(axis), rows));
    inputs.push_back(operand);
  }
  if (inputs.size() == 1) {
    node.set_output(0, inputs[0]);
    return {};
  }
  Attributes attributes;
  attributes.set("axis", axis);
  return node.finish(node.builder().emit(OperatorKind::kConcat, std::move(inputs), std::move(attributes)));
}

// A part of x; whole dimensions leave x as it is.
Result<ValueIndex> slice_of(GraphBuilder& builder, ValueIndex x, std::vector<int64_t> starts,
                            std::vector<int64_t> steps, Shape shape) {
  const ValueType type{builder.value(x).type, std::move(shape)};
  const bool whole =
      type.shape == builder.value(x).shape && std::ranges::all_of(steps, [](int64_t s) { return s > 0; });
  if (whole) return x;
  Attributes attributes;
  attributes.set("starts", std::move(starts));
  attributes.set("steps", std::move(steps));
  return builder.emit(OperatorKind::kSlice, {x}, std::move(attributes), type);
}

Result<std::vector<int64_t>> split_sizes(NodeTranslation& node, int64_t extent) {
  std::vector<int64_t> sizes = node.integers("split");
  if (node.has_input(1)) {
    FOLIOT_ASSIGN_OR_RETURN(sizes, node.integers_of(1, "'split'"));
  }
  const auto parts = static_cast<int64_t>(node.output_count());
  if (sizes.empty()) {
    const int64_t size = (extent + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<int64_t>(extent - i * size, 0, size));
  }
  int64_t total = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > extent) return Status::invalid_argument("a part has an impossible size");
    total += size;
  }
  if (static_cast<int64_t>(sizes.size()) != parts || total != extent) {
    return Status::invalid_argument(
        fmt::format("parts {} do not make {} outputs of an extent of {}", to_string(sizes), parts, extent));
  }
  return sizes;
}

Status split(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(node.integer("axis", 0), node.rank(0)));
  const auto dimension = static_cast<size_t>(axis);
  Shape shape = node.shape(0);
  if (node.output_count() == 0) return Status::invalid_argument("it has no outputs");
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, split_sizes(node, shape[dimension]));
  std::vector<int64_t> starts(shape.size(), 0);
  for (size_t i = 0; i < sizes.size(); ++i) {
    shape[dimension] = sizes[i];
    if (node.wants_output(i)) {
      FOLIOT_ASSIGN_OR_RETURN(const ValueIndex part, slice_of(node.builder(), node.input(0), starts,
                                                              std::vector<int64_t>(shape.size(), 1), shape));
      node.set_output(i, part);
    }
    starts[dimension] += sizes[i];
  }
  return {};
}

struct SliceLists {
  std::vector<int64_t> starts;
  std::vector<int64_t> ends;
  std::vector<int64_t> axes;
  std::vector<int64_t> steps;
};

// Attributes before opset 10, operands since.
Result<SliceLists> read_slice_lists(NodeTranslation& node) {
  SliceLists lists{
      .starts = node.integers("starts"), .ends = node.integers("ends"), .axes = node.integers("axes"), .steps = {}};
  std::vector<int64_t>* const operands[] = {&lists.starts, &lists.ends, &lists.axes, &lists.steps};
  static constexpr std::string_view kNames[] = {"'starts'", "'ends'", "'axes'", "'steps'"};
  for (size_t i = 0; i < 4; ++i) {
    if (!node.has_input(i + 1)) continue;
    FOLIOT_ASSIGN_OR_RETURN(*operands[i], node.integers_of(i + 1, kNames[i]));
  }
  if (lists.axes.empty()) {
    lists.axes.resize(lists.starts.size());
    std::iota(lists.axes.begin(), lists.axes.end(), 0);
  }
  if (lists.steps.empty()) lists.steps.assign(lists.starts.size(), 1);
  for (const auto* list : {&lists.ends, &lists.axes, &lists.steps}) {
    if (list->size() != lists.starts.size()) return Status::invalid_argument("its lists differ in length");
  }
  return lists;
}

// numpy's start:end:step on one dimension.
Status slice_dimension(int64_t extent, int64_t end, int64_t* start, int64_t* step, int64_t* count) {
  if (*step == 0) return Status::invalid_argument("a step is 0");
  // Beyond any extent all steps are the same, and this far none overflows.
  *step = std::clamp<int64_t>(*step, -(int64_t{1} << 40), int64_t{1} << 40);
  const auto counted = [&](int64_t at) { return at < 0 ? at + extent : at; };
  if (*step > 0) {
    *start = std::clamp<int64_t>(counted(*start), 0, extent);
    const int64_t last = std::clamp<int64_t>(counted(end), 0, extent);
    *count = std::max<int64_t>(0, (last - *start + *step - 1) / *step);
  } else {
    *start = std::clamp<int64_t>(counted(*start), -1, extent - 1);
    const int64_t last = std::clamp<int64_t>(counted(end), -1, extent - 1);
    *count = std::max<int64_t>(0, (*start - last - *step - 1) / -*step);
    *start = std::max<int64_t>(*start, 0);
  }
  return {};
}

Status slice(NodeTranslation& node) {
  Shape shape = node.shape(0);
  FOLIOT_ASSIGN_OR_RETURN(const SliceLists lists, read_slice_lists(node));
  FOLIOT_RETURN_IF_ERROR(node.axes(lists.axes, node.rank(0)).status());
  std::vector<int64_t> starts(shape.size(), 0);
  std::vector<int64_t> steps(shape.size(), 1);
  for (size_t i = 0; i < lists.axes.size(); ++i) {
    FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(lists.axes[i], node.rank(0)));
    const auto at = static_cast<size_t>(axis);
    starts[at] = lists.starts[i];
    steps[at] = lists.steps[i];
    const int64_t extent = shape[at];
    FOLIOT_RETURN_IF_ERROR(slice_dimension(extent, lists.ends[i], &starts[at], &steps[at], &shape[at]));
  }
  return node.finish(slice_of(node.builder(), node.input(0), std::move(starts), std::move(steps), std::move(shape)));
}

Status gather(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(node.integer("axis", 0), node.rank(0)));
  const int64_t extent = node.shape(0)[static_cast<size_t>(axis)];
  if (node.value(1).is_constant()) {
    for (int64_t index : to_integers(node.builder().constant(node.input(1)))) {
      if (index < -extent || index >= extent) {
        return Status::invalid_argument(fmt::format("index {} is outside an extent of {}", index, extent));
      }
    }
  }
  Attributes attributes;
  attributes.set("axis", axis);
  return node.finish(node.builder().emit(OperatorKind::kGather, {node.input(0), node.input(1)}, std::move(attributes)));
}

Status expand(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const Shape wanted, node.integers_of(1, "the shape"));
  FOLIOT_RETURN_IF_ERROR(check_shape(node.value(0).type, wanted));
  FOLIOT_ASSIGN_OR_RETURN(Shape shape, broadcast(node.shape(0), wanted));
  return node.finish(node.builder().expand(node.input(0), std::move(shape)));
}

// [a, b] repeated [m, n] times: as [1, a, 1, b], expanded to [m, a, n, b], seen
// as [m * a, n * b].
Status tile(NodeTranslation& node) {
  GraphBuilder& builder = node.builder();
  const Shape shape = node.shape(0);
  const DataType type = node.value(0).type;
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, node.integers_of(1, "'repeats'"));
  if (repeats.size() != shape.size()) return Status::invalid_argument("'repeats' does not fit the input");
  FOLIOT_RETURN_IF_ERROR(check_shape(type, repeats));
  Shape apart, expanded, result;
  for (size_t i = 0; i < shape.size(); ++i) {
    apart.insert(apart.end(), {1, shape[i]});
    expanded.insert(expanded.end(), {repeats[i], shape[i]});
    result.push_back(repeats[i] * shape[i]);
  }
  FOLIOT_RETURN_IF_ERROR(check_shape(type, expanded));
  FOLIOT_ASSIGN_OR_RETURN(ValueIndex x, builder.reshape(node.input(0), std::move(apart)));
  FOLIOT_ASSIGN_OR_RETURN(x, builder.expand(x, std::move(expanded)));
  return node.finish(builder.reshape(x, std::move(result)));
}

// Both of these cut a dimension in two, transpose, and join others, but for the one that devices know.
Status depth_and_space(NodeTranslation& node) {
  GraphBuilder& builder = node.builder();
  const Shape s = node.shape(0);
  const int64_t block = node.integer("blocksize", 0);
  if (s.size() != 4 || block < 1 || block > 1 << 20)
    return Status::invalid_argument("input or blocksize are impossible");
  const bool columns_first = node.text("mode", "DCR") == "CRD";
  Shape apart, result;
  std::vector<int64_t> permutation;
  if (node.type() == "DepthToSpace") {
    if (s[1] % (block * block) != 0) return Status::invalid_argument("blocksize does not divide the channels");
    const int64_t depth = s[1] / (block * block);
    apart = columns_first ? Shape{s[0], depth, block, block, s[2], s[3]} : Shape{s[0], block, block, depth, s[2], s[3]};
    permutation = columns_first ? std::vector<int64_t>{0, 1, 4, 2, 5, 3} : std::vector<int64_t>{0, 3, 4, 1, 5, 2};
    result = {s[0], depth, s[2] * block, s[3] * block};
    if (!columns_first && node.value(0).type == DataType::kFloat32) {
      Attributes attributes;
      attributes.set("rows", block);
      attributes.set("columns", block);
      return node.finish(builder.emit(OperatorKind::kDepthToSpace, {node.input(0)}, std::move(attributes),
                                      ValueType{DataType::kFloat32, std::move(result)}));
    }
  } else {
    if (s[2] % block != 0 || s[3] % block != 0) return Status::invalid_argument("blocksize does not divide the input");
    apart = {s[0], s[1], s[2] / block, block, s[3] / block, block};
    permutation = columns_first ? std::vector<int64_t>{0, 1, 3, 5, 2, 4} : std::vector<int64_t>{0, 3, 5, 1, 2, 4};
    result = {s[0], s[1] * block * block, s[2] / block, s[3] / block};
  }
  FOLIOT_ASSIGN_OR_RETURN(ValueIndex x, builder.reshape(node.input(0), std::move(apart)));
  FOLIOT_ASSIGN_OR_RETURN(x, builder.transpose(x, std::move(permutation)));
  return node.finish(builder.reshape(x, std::move(result)));
}

// Attributes before opset 11, operands since; spread over all dimensions.
Result<std::vector<int64_t>> read_pads(NodeTranslation& node) {
  std::vector<int64_t> pads = node.integers("pads");
  if (node.has_input(1)) {
    FOLIOT_ASSIGN_OR_RETURN(pads, node.integers_of(1, "'pads'"));
  }
  const auto rank = static_cast<size_t>(node.rank(0));
  if (!node.has_input(3)) {
    if (pads.size() != 2 * rank) return Status::invalid_argument("'pads' does not fit the input");
    return pads;
  }
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, node.integers_of(3, "'axes'"));
  if (pads.size() != 2 * axes.size()) return Status::invalid_argument("'pads' does not fit 'axes'");
  std::vector<int64_t> spread(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(axes[i], node.rank(0)));
    spread[static_cast<size_t>(axis)] = pads[i];
    spread[rank + static_cast<size_t>(axis)] = pads[axes.size() + i];
  }
  return spread;
}

// The value of constant padding, 0 if nothing says it.
Result<double> padding_value(NodeTranslation& node) {
  if (!node.has_input(2)) return node.real("value", 0);
  FOLIOT_ASSIGN_OR_RETURN(const Constant constant, node.constant(2, "the padding's value"));
  if (element_count(constant.shape) != 1) return Status::invalid_argument("the padding's value is not a scalar");
  return to_doubles(constant)[0];
}

// Negative pads cut off, those that remain add.
Result<ValueIndex> cut_negative(NodeTranslation& node, std::vector<int64_t>* pads) {
  Shape shape = node.shape(0);
  const size_t rank = shape.size();
  std::vector<int64_t> starts(rank, 0);
  for (size_t i = 0; i < rank; ++i) {
    for (int64_t added : {(*pads)[i], (*pads)[rank + i]}) {
      if (added > int64_t{1} << 31 || added < -(int64_t{1} << 31))
        return Status::invalid_argument("pads are impossible");
    }
    starts[i] = std::max<int64_t>(-(*pads)[i], 0);
    shape[i] = shape[i] - starts[i] - std::max<int64_t>(-(*pads)[rank + i], 0);
    if (shape[i] < 0) return Status::invalid_argument("negative pads cut off more than there is");
    (*pads)[i] = std::max<int64_t>((*pads)[i], 0);
    (*pads)[rank + i] = std::max<int64_t>((*pads)[rank + i], 0);
  }
  return slice_of(node.builder(), node.input(0), std::move(starts), std::vector<int64_t>(rank, 1), std::move(shape));
}

// The input goes on from its other end.
Status pad_by_wrapping(NodeTranslation& node, ValueIndex x, const std::vector<int64_t>& pads) {
  Composer c(node.builder());
  const Shape shape = c.shape(x);
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t begin = pads[i], extent = shape[i];
    if (begin == 0 && pads[shape.size() + i] == 0) continue;
    if (extent == 0) return Status::invalid_argument("nothing can be wrapped around");
    std::vector<int64_t> at;
    for (int64_t k = -begin; k < extent + pads[shape.size() + i]; ++k) at.push_back((k % extent + extent) % extent);
    x = c.gather(x, c.integers(at, {static_cast<int64_t>(at.size())}), static_cast<int64_t>(i));
  }
  return c.finish(node, x);
}

Status pad(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(std::vector<int64_t> pads, read_pads(node));
  const std::string mode = node.text("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap") {
    return Status::invalid_argument("mode is '" + mode + "'");
  }
  FOLIOT_ASSIGN_OR_RETURN(const double value, padding_value(node));
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex x, cut_negative(node, &pads));
  if (mode == "wrap") return pad_by_wrapping(node, x, pads);
  const Shape source = node.builder().value(x).shape;
  Shape shape = source;
  const size_t rank = shape.size();
  for (size_t i = 0; i < rank; ++i) {
    for (int64_t added : {pads[i], pads[rank + i]}) {
      const bool too_far = (mode == "reflect" && added >= source[i]) || (mode == "edge" && source[i] == 0);
      if (added > 0 && too_far) return Status::invalid_argument("pads reach beyond the input");
      shape[i] += added;
    }
  }
  if (shape == source) {
    node.set_output(0, x);
    return {};
  }
  Attributes attributes;
  attributes.set("pads", std::move(pads));
  attributes.set("mode", mode);
  attributes.set("value", value);
  return node.finish(node.builder().emit(OperatorKind::kPad, {x}, std::move(attributes),
                                         ValueType{node.value(0).type, std::move(shape)}));
}

constexpr OnnxOperator kMovementOperators[] = {
    {"Transpose", 1, 1, transpose},
    {"Concat", 1, kAnyNumber, concatenation},
    {"Split", 1, 2, split},
    {"Slice", 1, 5, slice},
    {"Gather", 2, 2, gather},
    {"Expand", 2, 2, expand},
    {"Tile", 2, 2, tile},
    {"DepthToSpace", 1, 1, depth_and_space},
    {"Pad", 1, 4, pad},
    {"SpaceToDepth", 1, 1, depth_and_space},
};

}  // namespace

std::span<const OnnxOperator> movement_operators() { return kMovementOperators; }

}  // namespace foliot
