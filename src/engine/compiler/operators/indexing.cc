// Operators that choose elements by position: gathering, scattering, ordering.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/element_type.h"
#include "engine/compiler/operators/nowhere.h"
#include "engine/compiler/operators/onnx_operator.h"

namespace foliot {
namespace {

Status gather_elements(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(node.integer("axis", 0), node.rank(0)));
  Composer c(node.builder());
  return c.finish(node, c.gather_elements(node.input(0), node.input(1), axis));
}

// How updates are combined with what is there.
Result<Function> read_reduction(NodeTranslation& node) {
  const std::string name = node.text("reduction", "none");
  const std::optional<Function> reduction = parse_function(name);
  for (const Function known : {Function::kNone, Function::kAdd, Function::kMul, Function::kMin, Function::kMax})
    if (reduction == known) return known;
  return Status::invalid_argument("reduction is '" + name + "', not none, add, mul, min or max");
}

Status scatter_elements(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const Function reduction, read_reduction(node));
  FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(node.integer("axis", 0), node.rank(0)));
  Composer c(node.builder());
  return c.finish(node, c.scatter_elements(node.input(0), node.input(1), node.input(2), axis, reduction));
}

// Tuples of indices [.., k] into the first k of `shape`'s dimensions, as
// positions [..] in those dimensions seen as one; kNowhere for one with an
// index out of range.
ValueIndex joined_indices(Composer& c, ValueIndex indices, const Shape& shape, int64_t k) {
  const int64_t last = c.rank(indices) - 1;
  Shape result_shape = c.shape(indices);
  result_shape.pop_back();
  ValueIndex joined = kNoValue, inside = kNoValue;
  for (int64_t i = 0; i < k; ++i) {
    const int64_t extent = shape[static_cast<size_t>(i)];
    ValueIndex column = c.reshape(c.slice(indices, last, i, 1), result_shape);
    const ValueIndex given = column;
    column = c.unary(Function::kClip, column, static_cast<double>(-extent), static_cast<double>(extent - 1));
    const ValueIndex fits = c.binary(Function::kEqual, given, column);
    inside = i == 0 ? fits : c.binary(Function::kAnd, inside, fits);
    column = c.where(c.binary(Function::kLess, column, c.like(column, 0)),
                     c.add(column, c.like(column, static_cast<double>(extent))), column);
    joined = i == 0 ? column : c.add(c.linear(joined, static_cast<double>(extent)), column);
  }
  return c.where(inside, joined, c.like(joined, static_cast<double>(kNowhere)));
}

int64_t product(const Shape& shape, size_t first, size_t last) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(first),
                         shape.begin() + static_cast<std::ptrdiff_t>(last), int64_t{1}, std::multiplies<>());
}

// The tuples of indices must name dimensions that exist.
Result<int64_t> tuple_size(NodeTranslation& node, int64_t rank) {
  if (node.rank(1) < 1 || node.shape(1).back() < 1 || node.shape(1).back() > rank) {
    return Status::invalid_argument(
        fmt::format("indices {} do not fit {}", to_string(node.shape(1)), to_string(node.shape(0))));
  }
  return node.shape(1).back();
}

// The batch dimensions become one, of which each entry's positions begin where
// the one before ended; then it is a Gather of rows.
Status gather_nd(NodeTranslation& node) {
  const Shape x = node.shape(0), indices = node.shape(1);
  const int64_t batch_dims = node.integer("batch_dims", 0);
  if (batch_dims < 0 || batch_dims >= node.rank(1) || batch_dims > node.rank(0) ||
      !std::equal(x.begin(), x.begin() + batch_dims, indices.begin())) {
    return Status::invalid_argument("batch_dims do not fit the input");
  }
  FOLIOT_ASSIGN_OR_RETURN(const int64_t k, tuple_size(node, node.rank(0) - batch_dims));
  const auto first = static_cast<size_t>(batch_dims), last = static_cast<size_t>(batch_dims + k);
  const int64_t batch = product(x, 0, first), rows = product(x, first, last);
  Composer c(node.builder());
  ValueIndex at = joined_indices(c, c.cast(node.input(1), DataType::kInt64), Shape(x.begin() + batch_dims, x.end()), k);
  if (batch > 1) {
    const Shape shape = c.shape(at);
    at = c.reshape(at, {batch, product(shape, first, shape.size())});
    at = c.reshape(c.add(at, c.linear(c.positions(batch, 0, 2), static_cast<double>(rows))), shape);
  }
  Shape flat{batch * rows};
  flat.insert(flat.end(), x.begin() + static_cast<std::ptrdiff_t>(last), x.end());
  return c.finish(node, c.gather(c.reshape(node.input(0), flat), at, 0));
}

// Rows of [rows, size], each position of them by itself.
Status scatter_nd(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const Function reduction, read_reduction(node));
  const Shape x = node.shape(0);
  FOLIOT_ASSIGN_OR_RETURN(const int64_t k, tuple_size(node, node.rank(0)));
  const auto first = static_cast<size_t>(k);
  const int64_t rows = product(x, 0, first), size = product(x, first, x.size());
  Composer c(node.builder());
  const ValueIndex at = joined_indices(c, c.cast(node.input(1), DataType::kInt64), x, k);
  const auto count = static_cast<int64_t>(element_count(c.shape(at)));
  const ValueIndex indices = c.expand(c.reshape(at, {count, 1}), {count, size});
  const ValueIndex updates = c.reshape(node.input(2), {count, size});
  const ValueIndex result = c.scatter_elements(c.reshape(node.input(0), {rows, size}), indices, updates, 0, reduction);
  return c.finish(node, c.reshape(result, x));
}

// A cache with `update` written along one dimension, from `write_indices` on.
Status tensor_scatter(NodeTranslation& node) {
  const Shape cache = node.shape(0), update = node.shape(1);
  FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(node.integer("axis", -2), node.rank(0)));
  const std::string mode = node.text("mode", "linear");
  if (mode != "linear" && mode != "circular") return Status::invalid_argument("mode is '" + mode + "'");
  const auto dimension = static_cast<size_t>(axis);
  if (update.size() != cache.size()) return Status::invalid_argument("the update does not fit the cache");
  Composer c(node.builder());
  ValueIndex at = c.positions(update[dimension], dimension, cache.size());
  if (node.has_input(2)) {
    Shape rows(cache.size(), 1);
    rows[0] = cache[0];
    at = c.add(at, c.reshape(c.cast(node.input(2), DataType::kInt64), rows));
  }
  if (mode == "circular") at = c.binary(Function::kMod, at, c.like(at, static_cast<double>(cache[dimension])));
  return c.finish(node, c.scatter_elements(node.input(0), c.expand(at, update), node.input(1), axis));
}

Status top_k(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(node.integer("axis", -1), node.rank(0)));
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<int64_t> k, node.integers_of(1, "'K'"));
  Shape shape = node.shape(0);
  int64_t& extent = shape[static_cast<size_t>(axis)];
  if (k.size() != 1 || k[0] < 0 || k[0] > extent) return Status::invalid_argument("K is impossible");
  extent = k[0];
  Attributes attributes;
  attributes.set("axis", axis);
  attributes.set("largest", int64_t{node.integer("largest", 1) != 0});
  Composer c(node.builder());
  const ValueIndex at = c.emit(OperatorKind::kTopK, {node.input(0)}, std::move(attributes),
                               ValueType{DataType::kInt64, std::move(shape)});
  if (node.wants_output(0)) c.finish(node, c.gather_elements(node.input(0), at, axis), 0).ok();
  return c.finish(node, at, 1);
}

Status cumulative(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<int64_t> given, node.integers_of(1, "'axis'"));
  if (given.size() != 1) return Status::invalid_argument("the axis is not a scalar");
  FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(given[0], node.rank(0)));
  Composer c(node.builder());
  return c.finish(node, c.cumulative(node.type() == "CumSum" ? Function::kSum : Function::kProd, node.input(0), axis,
                                     node.integer("exclusive", 0) != 0, node.integer("reverse", 0) != 0));
}

// [.., rows, columns]: which elements are kept.
Constant triangle(int64_t rows, int64_t columns, int64_t k, bool upper) {
  std::vector<int64_t> kept;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      kept.push_back(upper ? column - row >= k : column - row <= k);
    }
  }
  return from_integers(DataType::kBool, {rows, columns}, kept);
}

Status trilu(NodeTranslation& node) {
  const Shape shape = node.shape(0);
  if (shape.size() < 2) return Status::invalid_argument("the input is no matrix");
  int64_t k = 0;
  if (node.has_input(1)) {
    FOLIOT_ASSIGN_OR_RETURN(const std::vector<int64_t> given, node.integers_of(1, "'k'"));
    if (given.size() != 1) return Status::invalid_argument("'k' is not a scalar");
    k = std::clamp<int64_t>(given[0], -(int64_t{1} << 40), int64_t{1} << 40);
  }
  Composer c(node.builder());
  const ValueIndex kept = c.constant(triangle(shape[shape.size() - 2], shape.back(), k, node.integer("upper", 1) != 0));
  return c.finish(node, c.where(kept, node.input(0), c.like(node.input(0), 0)));
}

Status eye_like(NodeTranslation& node) {
  const Shape shape = node.shape(0);
  if (shape.size() != 2) return Status::invalid_argument("the input is no matrix");
  DataType type = node.value(0).type;
  if (node.has_attribute("dtype")) {
    FOLIOT_ASSIGN_OR_RETURN(type, element_type(node.integer("dtype", 0)));
  }
  const int64_t k = node.integer("k", 0);
  std::vector<int64_t> values;
  for (int64_t row = 0; row < shape[0]; ++row) {
    for (int64_t column = 0; column < shape[1]; ++column) values.push_back(column - row == k);
  }
  node.set_output(0, node.builder().add_constant(from_integers(type, shape, values)));
  return {};
}

// Where `positions` along a new dimension are those that are asked for.
Status one_hot(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const Constant given, node.constant(1, "'depth'"));
  if (element_count(given.shape) != 1) return Status::invalid_argument("'depth' is not a scalar");
  const int64_t depth = to_integers(given)[0];
  if (depth < 1 || depth > 1 << 24) return Status::invalid_argument("'depth' is impossible");
  if (element_count(node.shape(2)) != 2) return Status::invalid_argument("'values' are not two");
  Shape shape = node.shape(0);
  FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(node.integer("axis", -1), node.rank(0) + 1));
  shape.insert(shape.begin() + axis, 1);
  Composer c(node.builder());
  ValueIndex wanted = c.reshape(c.cast(node.input(0), DataType::kInt64), shape);
  wanted = c.where(c.binary(Function::kLess, wanted, c.like(wanted, 0)),
                   c.add(wanted, c.like(wanted, static_cast<double>(depth))), wanted);
  const ValueIndex hot =
      c.binary(Function::kEqual, c.positions(depth, static_cast<size_t>(axis), shape.size()), wanted);
  const ValueIndex values = c.reshape(node.input(2), {2});
  return c.finish(node, c.where(hot, c.slice(values, 0, 1, 1), c.slice(values, 0, 0, 1)));
}

// One at the first of the largest, else zero. Before opset 13 the dimensions
// from `axis` on were one.
Status hardmax(NodeTranslation& node) {
  const bool flattens = node.opset() < 13;
  const Shape shape = node.shape(0);
  if (shape.empty()) return Status::invalid_argument("a scalar has no dimension");
  FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(node.integer("axis", flattens ? 1 : -1), node.rank(0)));
  Composer c(node.builder());
  ValueIndex x = node.input(0);
  if (flattens) {
    Shape flat(shape.begin(), shape.begin() + axis);
    flat.push_back(product(shape, static_cast<size_t>(axis), shape.size()));
    x = c.reshape(x, flat);
  }
  const Shape seen = c.shape(x);
  const auto dimension = static_cast<size_t>(axis);
  const ValueIndex hot =
      c.binary(Function::kEqual, c.arg_max(x, axis), c.positions(seen[dimension], dimension, seen.size()));
  return c.finish(node, c.reshape(c.cast(hot, c.type(x)), shape));
}

// The first `sequence_lens[b]` elements along the time dimension, backwards.
Status reverse_sequence(NodeTranslation& node) {
  const Shape shape = node.shape(0);
  if (shape.size() < 2) return Status::invalid_argument("the input has less than two dimensions");
  FOLIOT_ASSIGN_OR_RETURN(const int64_t batch, node.axis(node.integer("batch_axis", 1), node.rank(0)));
  FOLIOT_ASSIGN_OR_RETURN(const int64_t time, node.axis(node.integer("time_axis", 0), node.rank(0)));
  const auto rows = static_cast<size_t>(batch), steps = static_cast<size_t>(time);
  if (batch == time || node.shape(1) != Shape{shape[rows]}) {
    return Status::invalid_argument("sequence_lens or axes do not fit the input");
  }
  Composer c(node.builder());
  Shape spread(shape.size(), 1);
  spread[rows] = shape[rows];
  const ValueIndex lengths = c.reshape(c.cast(node.input(1), DataType::kInt64), spread);
  const ValueIndex step = c.positions(shape[steps], steps, shape.size());
  const ValueIndex mirrored = c.sub(c.linear(lengths, 1, -1), step);
  const ValueIndex at = c.where(c.binary(Function::kLess, step, lengths), mirrored, step);
  return c.finish(node, c.gather_elements(node.input(0), c.expand(at, shape), time));
}

// Cut where too long and padded where too short, by as much on both sides.
Status center_crop_pad(NodeTranslation& node) {
  Shape shape = node.shape(0);
  FOLIOT_ASSIGN_OR_RETURN(const Shape wanted, node.integers_of(1, "the shape"));
  std::vector<int64_t> axes = node.integers("axes");
  if (axes.empty()) {
    axes.resize(shape.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  FOLIOT_RETURN_IF_ERROR(node.axes(axes, node.rank(0)).status());
  if (axes.size() != wanted.size()) return Status::invalid_argument("axes and shape differ in length");
  FOLIOT_RETURN_IF_ERROR(check_shape(node.value(0).type, wanted));
  Composer c(node.builder());
  ValueIndex x = node.input(0);
  std::vector<int64_t> pads(2 * shape.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    FOLIOT_ASSIGN_OR_RETURN(const int64_t axis, node.axis(axes[i], node.rank(0)));
    const auto dimension = static_cast<size_t>(axis);
    const int64_t missing = wanted[i] - shape[dimension];
    if (missing < 0) x = c.slice(x, axis, -missing / 2, wanted[i]);
    if (missing <= 0) continue;
    pads[dimension] = missing / 2;
    pads[shape.size() + dimension] = missing - missing / 2;
  }
  return c.finish(node, c.pad(x, std::move(pads)));
}

constexpr OnnxOperator kIndexingOperators[] = {
    {"GatherElements", 2, 2, gather_elements},
    {"GatherND", 2, 2, gather_nd},
    {"ScatterElements", 3, 3, scatter_elements},
    {"Scatter", 3, 3, scatter_elements},
    {"ScatterND", 3, 3, scatter_nd},
    {"TensorScatter", 2, 3, tensor_scatter},
    {"TopK", 2, 2, top_k},
    {"CumSum", 2, 2, cumulative},
    {"CumProd", 2, 2, cumulative},
    {"Trilu", 1, 2, trilu},
    {"EyeLike", 1, 1, eye_like},
    {"OneHot", 3, 3, one_hot},
    {"Hardmax", 1, 1, hardmax},
    {"ReverseSequence", 2, 2, reverse_sequence},
    {"CenterCropPad", 2, 2, center_crop_pad},
};

}  // namespace

std::span<const OnnxOperator> indexing_operators() { return kIndexingOperators; }

}  // namespace foliot
