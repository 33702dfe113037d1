// Operators that move elements without computing: reorders, views and copies.
#include <algorithm>
#include <cstring>

#include "engine/device/cpu/channel_layout.h"
#include "engine/device/cpu/channel_order.h"
#include "engine/device/cpu/families.h"
#include "engine/device/cpu/parallel.h"
#include "engine/device/cpu/strided_loop.h"
#include "engine/device/cpu/typed.h"

namespace foliot {
namespace {

class CopyKernel : public Kernel {
 public:
  explicit CopyKernel(const OperatorView& view)
      : from_(view.input_index(0)), to_(view.output_index()), bytes_(view.output().bytes) {}

  Status run(Addresses addresses) override {
    std::memcpy(addresses[to_], addresses[from_], bytes_);
    return Status();
  }

 private:
  TensorIndex from_, to_;
  uint64_t bytes_;
};

// Between dense images and those whose channels lie together.
class ChannelOrderKernel : public Kernel {
 public:
  ChannelOrderKernel(const OperatorView& view, const ChannelOrder& order, bool together)
      : from_(view.input_index(0)), to_(view.output_index()), order_(order), together_(together) {}

  Status run(Addresses addresses) override {
    const float* from = reinterpret_cast<const float*>(addresses[from_]);
    float* to = reinterpret_cast<float*>(addresses[to_]);
    const int64_t parts = order_.parts();
    parallel_for(order_.images * parts, order_.images * order_.image, [&](int64_t i) {
      (together_ ? copies_.together : copies_.apart)(order_, i / parts, i % parts, from, to);
    });
    return Status();
  }

 private:
  TensorIndex from_, to_;
  ChannelOrder order_;
  bool together_;
  ChannelCopies copies_ = find_channel_copies();
};

// Y[i..] = X[start + i . strides]: Slice, Transpose and Expand.
template <typename T>
class StridedCopyKernel : public Kernel {
 public:
  StridedCopyKernel(const OperatorView& view, int64_t start, const Shape& strides)
      : from_(view.input_index(0)),
        to_(view.output_index()),
        start_(start),
        loop_(view.output().shape, {strides, dense_strides(view.output().shape)}) {}

  Status run(Addresses addresses) override {
    const T* from = reinterpret_cast<const T*>(addresses[from_]) + start_;
    T* to = reinterpret_cast<T*>(addresses[to_]);
    const int64_t stride = loop_.inner_strides()[0];
    loop_.run([&](const auto& offsets, int64_t count) {
      const T* source = from + offsets[0];
      T* destination = to + offsets[1];
      if (stride == 1)
        std::copy_n(source, count, destination);
      else if (stride == 0)
        std::fill_n(destination, count, *source);
      else
        for (int64_t i = 0; i < count; ++i) destination[i] = source[i * stride];
    });
    return Status();
  }

 private:
  TensorIndex from_, to_;
  int64_t start_;
  StridedLoop<2> loop_;
};

// How many pieces of equal length each operand of a concatenation is cut into;
// the result is piece 0 of every operand, then piece 1 of every operand, and so on.
// Errors: kInvalidArgument if the operands do not lie as the result does.
Result<int64_t> concat_rows(const OperatorView& view) {
  const auto axis = static_cast<std::ptrdiff_t>(view.attributes().integer("axis"));
  const Tensor& result = view.output();
  const Status damaged = Status::invalid_argument("operands in another layout than the result");
  std::optional<ChannelLayout> channels;
  if (!result.layout.empty()) channels = channel_layout(view.output_descriptor());
  if (!result.layout.empty() && (!channels || axis != 1)) return damaged;
  for (size_t i = 0; i < view.operation().inputs.size(); ++i) {
    const Tensor& part = view.input(i);
    if (part.type != result.type || (!channels && !part.layout.empty())) return damaged;
    if (!channels) continue;
    const auto like = with_channels(*channels, part.type, part.shape);
    if (!like || *like != view.input_descriptor(i)) return damaged;
  }
  if (!channels) return static_cast<int64_t>(element_count(Shape(result.shape.begin(), result.shape.begin() + axis)));
  return channels->kind == ChannelLayout::Kind::kLast ? channels->rows * channels->places : channels->rows;
}

// Operands laid one after another along a dimension, in one layout.
class ConcatKernel : public Kernel {
 public:
  ConcatKernel(const OperatorView& view, int64_t rows)
      : to_(view.output_index()), rows_(rows), row_bytes_(bytes_of_row(view.output())) {
    for (size_t i = 0; i < view.operation().inputs.size(); ++i)
      parts_.push_back({view.input_index(i), bytes_of_row(view.input(i))});
  }

  Status run(Addresses addresses) override {
    std::byte* to = addresses[to_];
    parallel_for(rows_, static_cast<int64_t>(row_bytes_) * rows_, [&](int64_t row) {
      std::byte* place = to + static_cast<uint64_t>(row) * row_bytes_;
      for (const auto& [tensor, bytes] : parts_) {
        std::memcpy(place, addresses[tensor] + static_cast<uint64_t>(row) * bytes, bytes);
        place += bytes;
      }
    });
    return Status();
  }

 private:
  struct Part {
    TensorIndex tensor;
    uint64_t bytes;  // of one row
  };

  uint64_t bytes_of_row(const Tensor& tensor) const {
    return byte_size(tensor.type, tensor.shape) / static_cast<uint64_t>(std::max<int64_t>(rows_, 1));
  }

  TensorIndex to_;
  int64_t rows_;
  uint64_t row_bytes_;
  std::vector<Part> parts_;
};

// How a copying operator walks its source.
struct Walk {
  int64_t start = 0;
  Shape strides;
};

Walk walk_of(OperatorKind kind, const Attributes& attributes, const Shape& source, const Shape& destination) {
  Walk walk;
  if (kind == OperatorKind::kExpand) {
    walk.strides = broadcast_strides(source, destination);
    return walk;
  }
  const Shape strides = dense_strides(source);
  for (size_t d = 0; d < destination.size(); ++d) {
    if (kind == OperatorKind::kTranspose) {
      walk.strides.push_back(strides.at(static_cast<size_t>(attributes.integers("permutation").at(d))));
      continue;
    }
    walk.start += attributes.integers("starts").at(d) * strides[d];
    walk.strides.push_back(attributes.integers("steps").at(d) * strides[d]);
  }
  return walk;
}

// Whether the walk reads one unbroken piece in order.
bool is_contiguous(const Walk& walk, const Shape& shape) {
  const Shape dense = dense_strides(shape);
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1 && walk.strides[d] != dense[d]) return false;
  return true;
}

// A view if the elements lie together, else a copy.
Status lower_walk(const Node& node, GraphLowering& lowering) {
  const ValueIndex source = node.inputs[0], destination = node.outputs[0];
  const Value& result = lowering.value(destination);
  const Walk walk = walk_of(node.kind, node.attributes, lowering.shape(source), result.shape);
  const TensorIndex from = lowering.dense(source);
  if (lowering.may_view(destination) && element_count(result.shape) > 0 && is_contiguous(walk, result.shape)) {
    lowering.result_over(destination, from, {}, byte_size(result.type, result.shape),
                         static_cast<uint64_t>(walk.start) * size_of(result.type));
    return Status();
  }
  Operator operation = GraphLowering::begin(node, "foliot:strided_copy");
  operation.inputs = {from};
  operation.outputs = {lowering.dense_result(destination)};
  return lowering.emit(std::move(operation));
}

// The layout that a reorder's other side, if dense, is to be seen with.
Shape common_shape(const OperatorView& view, const Tensor& a, const Tensor& b) {
  if (!a.layout.empty()) return shape_of(view.descriptor(view.input_index(0), a.shape));
  if (!b.layout.empty()) return shape_of(view.descriptor(view.output_index(), b.shape));
  return b.shape;
}

PrimitiveRecipe reorder_recipe(const OperatorView& view, Descriptor from, Descriptor to) {
  flatten_rows(&from, &to);
  PrimitiveRecipe recipe;
  recipe.descriptor =
      dnnl::reorder::primitive_desc(view.engine(), from, view.engine(), to, PrimitiveAttributes().make());
  recipe.inputs = {{DNNL_ARG_FROM, view.input_index(0)}};
  recipe.outputs = {{DNNL_ARG_TO, view.output_index()}};
  return recipe;
}

// oneDNN moves elements of 1 and 4 bytes faster than a plain loop.
std::optional<DataType> reorderable_type(DataType type) {
  switch (size_of(type)) {
    case 4: return DataType::kFloat32;
    case 1: return DataType::kUint8;
    default: return std::nullopt;
  }
}

// How channels of images that are concatenated should lie: as those of the
// largest operand that is not dense, or last where they would not fill blocks.
// Nullopt: densely, whatever is concatenated.
std::optional<ChannelLayout> concat_channels(const Node& node, const GraphLowering& lowering) {
  const DataType type = lowering.value(node.outputs[0]).type;
  if (!dnnl_type(type) || node.attributes.integer("axis") != 1) return std::nullopt;
  std::optional<ChannelLayout> largest;
  uint64_t elements = 0;
  for (ValueIndex input : node.inputs) {
    if (lowering.is_dense(input) || element_count(lowering.shape(input)) <= elements) continue;
    const std::optional<ChannelLayout> channels = channel_layout(lowering.layout(input));
    if (!channels) continue;
    elements = element_count(lowering.shape(input));
    largest = channels;
  }
  const bool fills = std::ranges::all_of(node.inputs, [&](ValueIndex input) {
    return !largest || with_channels(*largest, type, lowering.shape(input)).has_value();
  });
  if (!fills) largest->kind = ChannelLayout::Kind::kLast;
  return largest;
}

constexpr size_t kReorderRankMax = 6;

// A transposition that exchanges two runs of neighbouring dimensions at the end, as an order of channels: those of the
// first run. Nullopt: another one, or one of few elements.
std::optional<ChannelOrder> exchange_of(const Attributes& attributes, const Shape& source) {
  const std::vector<int64_t>& permutation = attributes.integers("permutation");
  const size_t rank = source.size();
  size_t kept = 0;
  while (kept < rank && permutation[kept] == static_cast<int64_t>(kept)) ++kept;
  if (kept == rank) return std::nullopt;
  const auto middle = static_cast<size_t>(permutation[kept]);
  for (size_t d = kept; d < rank; ++d)
    if (permutation[d] != static_cast<int64_t>(kept + (d - kept + middle - kept) % (rank - kept))) return std::nullopt;
  const auto count = [&](size_t begin, size_t end) {
    int64_t product = 1;
    for (size_t d = begin; d < end; ++d) product *= source[d];
    return product;
  };
  return ChannelOrder::last(count(0, kept), count(kept, middle), count(middle, rank));
}

}  // namespace

Result<PrimitiveRecipe> describe_reorder(const OperatorView& view) {
  const Shape shape = common_shape(view, view.input(0), view.output());
  return reorder_recipe(view, view.input_descriptor(0, shape), view.output_descriptor(shape));
}

// The tensor that is not dense says of what shape both are.
bool changes_channel_order(const Tensor& from, const Tensor& to) {
  if (from.type != DataType::kFloat32 || to.type != DataType::kFloat32) return false;
  if (from.layout.empty() == to.layout.empty()) return false;
  const auto descriptor = read_layout(DataType::kFloat32, from.layout.empty() ? to.layout : from.layout);
  return descriptor.ok() && channel_order(*descriptor).has_value();
}

Result<std::unique_ptr<Kernel>> make_copy(const OperatorView& view) {
  const Tensor& from = view.input(0);
  const Tensor& to = view.output();
  if (view.operation().kind == OperatorKind::kReorder && from.layout != to.layout) {
    if (!changes_channel_order(from, to)) return Status::invalid_argument("copies into another layout");
    const bool together = from.layout.empty();
    const auto order = channel_order(together ? view.output_descriptor() : view.input_descriptor(0));
    return std::unique_ptr<Kernel>(std::make_unique<ChannelOrderKernel>(view, *order, together));
  }
  return std::unique_ptr<Kernel>(std::make_unique<CopyKernel>(view));
}

Result<bool> lower_reshape(const Node& node, GraphLowering& lowering) {
  const ValueIndex source = node.inputs[0], destination = node.outputs[0];
  const Value& result = lowering.value(destination);
  const TensorIndex from = lowering.dense(source);
  if (lowering.may_view(destination)) {
    lowering.result_over(destination, from, {}, byte_size(result.type, result.shape));
    return true;
  }
  Operator operation = GraphLowering::begin(node, "foliot:copy");
  operation.inputs = {from};
  operation.outputs = {lowering.dense_result(destination)};
  FOLIOT_RETURN_IF_ERROR(lowering.emit(std::move(operation)));
  return true;
}

Result<bool> lower_walking(const Node& node, GraphLowering& lowering) {
  FOLIOT_RETURN_IF_ERROR(lower_walk(node, lowering));
  return true;
}

Result<bool> lower_transpose(const Node& node, GraphLowering& lowering) {
  const ValueIndex source = node.inputs[0], destination = node.outputs[0];
  const Value& result = lowering.value(destination);
  const Walk walk = walk_of(node.kind, node.attributes, lowering.shape(source), result.shape);
  const bool view = lowering.may_view(destination) && is_contiguous(walk, result.shape);
  if (view || !reorderable_type(result.type) || result.shape.size() > kReorderRankMax || result.shape.empty() ||
      element_count(result.shape) == 0)
    return lower_walking(node, lowering);
  if (result.type == DataType::kFloat32 && lowering.is_dense(source) &&
      exchange_of(node.attributes, lowering.shape(source)))
    return lower_walking(node, lowering);
  Operator operation = GraphLowering::begin(node);
  operation.inputs = {result.type == DataType::kFloat32 ? lowering.present(source) : lowering.dense(source)};
  operation.outputs = {lowering.dense_result(destination)};
  FOLIOT_RETURN_IF_ERROR(lowering.emit(std::move(operation)));
  return true;
}

// A reorder into the source's shape with the destination's strides.
Result<PrimitiveRecipe> describe_transpose(const OperatorView& view) {
  const std::vector<int64_t>& permutation = view.attributes().integers("permutation");
  const std::optional<DataType> type = reorderable_type(view.output().type);
  if (!type) return Status::invalid_argument("oneDNN does not transpose this type");
  const Shape dense = dense_strides(view.output().shape);
  Shape strides(dense.size());
  for (size_t d = 0; d < dense.size(); ++d) strides.at(static_cast<size_t>(permutation[d])) = dense[d];
  const Descriptor from =
      view.input(0).layout.empty() ? dense_descriptor(*type, view.input(0).shape) : view.input_descriptor(0);
  return reorder_recipe(view, from, strided_descriptor(*type, view.input(0).shape, strides));
}

Result<std::unique_ptr<Kernel>> make_strided_copy(const OperatorView& view) {
  if (view.operation().kind == OperatorKind::kTranspose && view.output().type == DataType::kFloat32) {
    if (const auto order = exchange_of(view.attributes(), view.input(0).shape))
      return std::unique_ptr<Kernel>(std::make_unique<ChannelOrderKernel>(view, *order, true));
  }
  const Walk walk = walk_of(view.operation().kind, view.attributes(), view.input(0).shape, view.output().shape);
  std::unique_ptr<Kernel> kernel;
  FOLIOT_RETURN_IF_ERROR(visit_size(size_of(view.output().type), [&]<typename T>(std::type_identity<T>) {
    kernel = std::make_unique<StridedCopyKernel<T>>(view, walk.start, walk.strides);
    return Status();
  }));
  return kernel;
}

Result<bool> lower_concat(const Node& node, GraphLowering& lowering) {
  const std::optional<ChannelLayout> channels = concat_channels(node, lowering);
  Operator operation = GraphLowering::begin(node, "foliot:concat");
  const auto layout = [&](ValueIndex value) {
    return *with_channels(*channels, lowering.value(value).type, lowering.shape(value));
  };
  for (ValueIndex input : node.inputs)
    operation.inputs.push_back(channels ? lowering.in_layout(input, layout(input)) : lowering.dense(input));
  const ValueIndex result = node.outputs[0];
  operation.outputs = {channels ? lowering.result(result, layout(result)) : lowering.dense_result(result)};
  FOLIOT_RETURN_IF_ERROR(lowering.emit(std::move(operation)));
  return true;
}

Result<std::unique_ptr<Kernel>> make_concat(const OperatorView& view) {
  FOLIOT_ASSIGN_OR_RETURN(const int64_t rows, concat_rows(view));
  return std::unique_ptr<Kernel>(std::make_unique<ConcatKernel>(view, rows));
}

}  // namespace foliot
