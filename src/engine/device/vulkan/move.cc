// Operators that move elements without computing, of any type.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/device/vulkan/operator_dispatches.h"
#include "engine/device/vulkan/walk.h"

namespace foliot {
namespace {

constexpr size_t kMoveRankMax = 6;
// Ids of constants, as in shaders/move.comp.
constexpr size_t kMoveWork = 16, kElementBytes = 17, kMoveRank = 18, kMode = 19, kLongIndices = 20;
constexpr uint32_t kStrided = 0, kPadding = 1, kGathering = 2;

Result<DispatchBuilder> moving(uint32_t work, const Tensor& from, const Tensor& to) {
  if (size_of(from.type) != size_of(to.type)) return Status::invalid_argument("elements of another size");
  DispatchBuilder builder(Shader::kMove);
  builder.constant(kMoveWork, work);
  builder.constant(kElementBytes, static_cast<uint32_t>(size_of(from.type)));
  builder.read(0, from);
  builder.write(to);
  return builder;
}

// For every index of `extents` the element at from_begin + index . from_strides goes to to_begin + index . to_strides.
struct StridedMove {
  Shape extents;
  std::vector<int64_t> from_strides, to_strides;
  int64_t from_begin = 0, to_begin = 0;
};

Result<Dispatch> strided(const Tensor& from, const Tensor& to, const StridedMove& move) {
  FOLIOT_ASSIGN_OR_RETURN(DispatchBuilder builder, moving(kStrided, from, to));
  FOLIOT_ASSIGN_OR_RETURN(const Walk walk,
                          merged_walk(move.extents, {move.from_strides, move.to_strides}, kMoveRankMax));
  builder.constant(kMoveRank, static_cast<uint32_t>(walk.extents.size()));
  const uint64_t count = element_count(move.extents);
  builder.words(5, {count});
  builder.words(6, walk.extents);
  builder.words(12, walk.strides[0]);
  builder.words(18, walk.strides[1]);
  builder.words(24, std::vector<int64_t>{move.from_begin, move.to_begin});
  return builder.over(count);
}

Result<Dispatch> whole_copy(const Tensor& from, const Tensor& to) {
  if (element_count(from.shape) != element_count(to.shape)) return Status::invalid_argument("a copy of another size");
  return strided(
      from, to,
      {.extents = to.shape, .from_strides = row_major_strides(to.shape), .to_strides = row_major_strides(to.shape)});
}

Result<Dispatch> slice(const OperatorTensors& of) {
  const Tensor &x = of.input(0), &y = of.output();
  const auto& starts = of.attributes().integers("starts");
  const auto& steps = of.attributes().integers("steps");
  StridedMove move{
      .extents = y.shape, .from_strides = row_major_strides(x.shape), .to_strides = row_major_strides(y.shape)};
  for (size_t d = 0; d < y.shape.size(); ++d) {
    move.from_begin += starts[d] * move.from_strides[d];
    move.from_strides[d] *= steps[d];
  }
  return strided(x, y, move);
}

Result<Dispatch> transposition(const OperatorTensors& of) {
  const Tensor &x = of.input(0), &y = of.output();
  const std::vector<int64_t> strides = row_major_strides(x.shape);
  StridedMove move{.extents = y.shape, .from_strides = {}, .to_strides = row_major_strides(y.shape)};
  for (const int64_t d : of.attributes().integers("permutation"))
    move.from_strides.push_back(strides.at(static_cast<size_t>(d)));
  return strided(x, y, move);
}

// Y[n, c, h, r, w, s] = X[n, r, s, c, h, w].
Result<Dispatch> depth_to_space(const OperatorTensors& of) {
  const Tensor &x = of.input(0), &y = of.output();
  const int64_t rows = of.attributes().integer("rows"), columns = of.attributes().integer("columns");
  const int64_t height = x.shape[2], width = x.shape[3], channels = y.shape[1], image = height * width;
  const Shape extents{y.shape[0], channels, height, rows, width, columns};
  return strided(x, y,
                 {.extents = extents,
                  .from_strides = {x.shape[1] * image, image, width, columns * channels * image, 1, channels * image},
                  .to_strides = row_major_strides(extents)});
}

Result<std::vector<Dispatch>> joining(const OperatorTensors& of) {
  const Tensor& y = of.output();
  const auto axis = static_cast<size_t>(of.attributes().integer("axis"));
  const std::vector<int64_t> strides = row_major_strides(y.shape);
  std::vector<Dispatch> dispatches;
  int64_t begin = 0;
  for (size_t i = 0; i < of.operation.inputs.size(); ++i) {
    const Tensor& x = of.input(i);
    Shape expected = y.shape;
    expected[axis] = x.shape.at(axis);
    if (x.shape != expected || begin + x.shape[axis] > y.shape[axis]) {
      return Status::invalid_argument("a part does not fit into the whole");
    }
    if (element_count(x.shape) == 0) continue;
    FOLIOT_ASSIGN_OR_RETURN(Dispatch dispatch, strided(x, y,
                                                       {.extents = x.shape,
                                                        .from_strides = row_major_strides(x.shape),
                                                        .to_strides = strides,
                                                        .to_begin = begin * strides[axis]}));
    dispatches.push_back(std::move(dispatch));
    begin += x.shape[axis];
  }
  return dispatches;
}

Result<Dispatch> padding(const OperatorTensors& of) {
  const Tensor &x = of.input(0), &y = of.output();
  const std::string& mode = of.attributes().text("mode");
  const std::vector<int64_t>& pads = of.attributes().integers("pads");
  const size_t rank = y.shape.size();
  if (rank > kMoveRankMax || rank == 0) return Status::unimplemented("padding of so many dimensions");
  const uint32_t number = mode == "constant" ? 0 : mode == "edge" ? 1 : mode == "reflect" ? 2 : 3;
  if (number == 3) return Status::unimplemented(fmt::format("padding by '{}'", mode));
  for (size_t d = 0; d < rank; ++d) {
    const int64_t most = number == 2 ? x.shape[d] - 1 : std::numeric_limits<int64_t>::max();
    if (pads[d] < 0 || pads[d + rank] < 0 || pads[d] > most || pads[d + rank] > most ||
        x.shape[d] + pads[d] + pads[d + rank] != y.shape[d] || x.shape[d] == 0) {
      return Status::unimplemented("padding that is cut off, or reflected more than once");
    }
  }
  FOLIOT_ASSIGN_OR_RETURN(DispatchBuilder builder, moving(kPadding, x, y));
  builder.constant(kMoveRank, static_cast<uint32_t>(rank));
  builder.constant(kMode, number);
  const uint64_t count = element_count(y.shape);
  builder.words(5, {count});
  builder.words(6, y.shape);
  builder.words(12, x.shape);
  builder.words(18, std::vector<int64_t>(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank)));
  std::array<std::byte, 8> value{};
  if (number == 0 && (y.type == DataType::kFloat16 || y.type == DataType::kBfloat16) &&
      of.attributes().real("value") != 0) {
    return Status::unimplemented("padding of half precision");
  }
  fill(std::span(value).first(size_of(y.type)), y.type, number == 0 ? of.attributes().real("value") : 0);
  uint64_t bits = 0;
  std::memcpy(&bits, value.data(), value.size());
  builder.words(24, {bits & 0xffffffffU, bits >> 32});
  return builder.over(count);
}

Result<Dispatch> gathering(const OperatorTensors& of) {
  const Tensor &x = of.input(0), &indices = of.input(1), &y = of.output();
  if (indices.type != DataType::kInt64 && indices.type != DataType::kInt32) {
    return Status::unimplemented(fmt::format("indices of {}", to_string(indices.type)));
  }
  if (element_count(x.shape) == 0) return Status::unimplemented("gathering from nothing");
  const auto axis = static_cast<size_t>(of.attributes().integer("axis"));
  const auto inner = element_count(Shape(x.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape.end()));
  FOLIOT_ASSIGN_OR_RETURN(DispatchBuilder builder, moving(kGathering, x, y));
  builder.constant(kLongIndices, indices.type == DataType::kInt64);
  const uint64_t count = element_count(y.shape);
  builder.words(5, {count, inner, static_cast<uint64_t>(x.shape[axis]), element_count(indices.shape)});
  builder.read(1, indices);
  return builder.over(count);
}

Result<Dispatch> move_dispatch(const OperatorTensors& of) {
  const Tensor &x = of.input(0), &y = of.output();
  switch (of.operation.kind) {
    case OperatorKind::kSlice: return slice(of);
    case OperatorKind::kTranspose: return transposition(of);
    case OperatorKind::kDepthToSpace: return depth_to_space(of);
    case OperatorKind::kPad: return padding(of);
    case OperatorKind::kGather: return gathering(of);
    case OperatorKind::kExpand:
      return strided(x, y,
                     {.extents = y.shape,
                      .from_strides = broadcast_strides(x.shape, y.shape),
                      .to_strides = row_major_strides(y.shape)});
    default: return whole_copy(x, y);  // kReshape, kReorder
  }
}

}  // namespace

Result<std::vector<Dispatch>> move_dispatches(const OperatorTensors& of) {
  if (!of.operation.post_operations.empty()) return Status::unimplemented("post-operations of what only moves");
  if (of.operation.kind == OperatorKind::kConcat) return joining(of);
  std::vector<Dispatch> dispatches;
  FOLIOT_ASSIGN_OR_RETURN(Dispatch dispatch, move_dispatch(of));
  dispatches.push_back(std::move(dispatch));
  return dispatches;
}

}  // namespace foliot
