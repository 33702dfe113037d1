// Operators that move elements without computing: reorders, views and copies.
#include <algorithm>
#include <cstring>

#include "device/cpu/families.h"
#include "device/cpu/strided_loop.h"
#include "device/cpu/typed.h"

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

// Dense operands laid one after another along a dimension.
class ConcatKernel : public Kernel {
 public:
  explicit ConcatKernel(const OperatorView& view) : to_(view.output_index()) {
    const auto axis = static_cast<std::ptrdiff_t>(view.attributes().integer("axis"));
    const Shape& shape = view.output().shape;
    rows_ = static_cast<int64_t>(element_count(Shape(shape.begin(), shape.begin() + axis)));
    for (size_t i = 0; i < view.operation().inputs.size(); ++i) {
      const Shape& part = view.input(i).shape;
      parts_.push_back({view.input_index(i), byte_size(view.output().type, Shape(part.begin() + axis, part.end()))});
    }
  }

  Status run(Addresses addresses) override {
    std::byte* to = addresses[to_];
    for (int64_t row = 0; row < rows_; ++row)
      for (const auto& [tensor, bytes] : parts_) {
        std::memcpy(to, addresses[tensor] + static_cast<uint64_t>(row) * bytes, bytes);
        to += bytes;
      }
    return Status();
  }

 private:
  struct Part {
    TensorIndex tensor;
    uint64_t bytes;  // of one row
  };

  TensorIndex to_;
  int64_t rows_ = 0;
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

PrimitiveRecipe reorder_recipe(const OperatorView& view, const Descriptor& from, const Descriptor& to) {
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

constexpr size_t kReorderRankMax = 6;

}  // namespace

Result<PrimitiveRecipe> describe_reorder(const OperatorView& view) {
  const Shape shape = common_shape(view, view.input(0), view.output());
  return reorder_recipe(view, view.input_descriptor(0, shape), view.output_descriptor(shape));
}

Result<std::unique_ptr<Kernel>> make_copy(const OperatorView& view) {
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
  const Walk walk = walk_of(view.operation().kind, view.attributes(), view.input(0).shape, view.output().shape);
  std::unique_ptr<Kernel> kernel;
  FOLIOT_RETURN_IF_ERROR(visit_size(size_of(view.output().type), [&]<typename T>(std::type_identity<T>) {
    kernel = std::make_unique<StridedCopyKernel<T>>(view, walk.start, walk.strides);
    return Status();
  }));
  return kernel;
}

// Channel blocks stay as they are where every operand has the same and fills them.
Result<bool> lower_concat(const Node& node, GraphLowering& lowering) {
  const ValueIndex destination = node.outputs[0];
  std::optional<dnnl::concat::primitive_desc> chosen;
  const bool floating = lowering.value(destination).type == DataType::kFloat32;
  const bool blocked = floating && std::any_of(node.inputs.begin(), node.inputs.end(),
                                               [&](ValueIndex input) { return !lowering.is_dense(input); });
  if (blocked) {
    try {
      std::vector<Descriptor> sources;
      for (ValueIndex input : node.inputs) sources.push_back(lowering.layout(input));
      chosen.emplace(static_cast<int>(node.attributes.integer("axis")), sources, lowering.engine(),
                     PrimitiveAttributes().make());
      if (!is_storable(chosen->dst_desc())) chosen.reset();
    } catch (const dnnl::error&) {
      chosen.reset();
    }
  }
  Operator operation = GraphLowering::begin(node, chosen ? "" : "foliot:concat");
  for (ValueIndex input : node.inputs)
    operation.inputs.push_back(chosen ? lowering.present(input) : lowering.dense(input));
  operation.outputs = {chosen ? lowering.result(destination, chosen->dst_desc()) : lowering.dense_result(destination)};
  FOLIOT_RETURN_IF_ERROR(lowering.emit(std::move(operation)));
  return true;
}

Result<PrimitiveRecipe> describe_concat(const OperatorView& view) {
  std::vector<Descriptor> sources;
  PrimitiveRecipe recipe;
  for (size_t i = 0; i < view.operation().inputs.size(); ++i) {
    sources.push_back(view.input_descriptor(i));
    recipe.inputs.push_back({DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), view.input_index(i)});
  }
  recipe.descriptor =
      dnnl::concat::primitive_desc(view.output_descriptor(), static_cast<int>(view.attributes().integer("axis")),
                                   sources, view.engine(), PrimitiveAttributes().make());
  recipe.outputs = {{DNNL_ARG_DST, view.output_index()}};
  return recipe;
}

Result<std::unique_ptr<Kernel>> make_concat(const OperatorView& view) {
  return std::unique_ptr<Kernel>(std::make_unique<ConcatKernel>(view));
}

}  // namespace foliot
