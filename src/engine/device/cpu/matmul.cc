// Matrix products: constant right-hand sides are packed, batch dimensions merged
// where the operands allow it.
#include "engine/device/cpu/families.h"
#include "engine/device/cpu/fusion.h"
#include "engine/device/cpu/parallel.h"
#include "engine/device/cpu/product_rows.h"
#include "engine/device/cpu/strided_loop.h"
#include "engine/device/cpu/typed.h"

namespace foliot {
namespace {

// The product as oneDNN sees it: three operands of equal rank.
struct MatMulGeometry {
  Shape left, left_strides, right, right_strides, result;
};

void swap_last_two(Shape& shape) { std::swap(shape[shape.size() - 1], shape[shape.size() - 2]); }

Shape merged(const Shape& shape, size_t keep) {
  int64_t product = 1;
  for (size_t d = 0; d + keep < shape.size(); ++d) product *= shape[d];
  Shape result{product};
  result.insert(result.end(), shape.end() - static_cast<std::ptrdiff_t>(keep), shape.end());
  return result;
}

bool same_batch(const Shape& a, const Shape& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end() - 2, b.begin());
}

// `may_merge`: all post-operations can be expressed on merged dimensions.
MatMulGeometry geometry_of(const Attributes& attributes, Shape left, Shape right, Shape result, bool may_merge) {
  const bool transpose_left = attributes.integer("transpose_a") != 0;
  const bool transpose_right = attributes.integer("transpose_b") != 0;
  const size_t rank = result.size();
  const bool flat_right = right.size() == 2 || element_count(Shape(right.begin(), right.end() - 2)) == 1;
  if (may_merge && rank > 2 && flat_right && !transpose_left && left.size() == rank) {
    left = merged(left, 1);
    right = Shape(right.end() - 2, right.end());
    result = merged(result, 1);
  } else if (may_merge && rank > 3 && same_batch(left, result) && same_batch(right, result)) {
    left = merged(left, 2);
    right = merged(right, 2);
    result = merged(result, 2);
  } else {
    left = padded_shape(left, rank);
    right = padded_shape(right, rank);
  }
  MatMulGeometry geometry{left, dense_strides(left), right, dense_strides(right), result};
  if (transpose_left) swap_last_two(geometry.left), swap_last_two(geometry.left_strides);
  if (transpose_right) swap_last_two(geometry.right), swap_last_two(geometry.right_strides);
  return geometry;
}

bool varies_in_last_dimension_only(const Shape& operand, const Shape& result) {
  return operand.empty() || element_count(operand) == element_count(result) ||
         element_count(operand) == static_cast<uint64_t>(operand.back());
}

struct MatMulDescriptors {
  Descriptor left, right, bias, result;
};

// The bias is added by the primitive itself, unless alpha, which comes before
// it, makes it a post-operation.
struct Bias {
  bool present = false;
  bool fused_after_alpha = false;
};

Bias bias_of(bool present, double alpha) { return {present, present && alpha != 1.0}; }

// What comes before the node's own post-operations.
void append_scale(const MatMulGeometry& geometry, Bias bias, double alpha, PrimitiveAttributes& attributes) {
  if (alpha != 1.0) attributes.append_linear(static_cast<float>(alpha));
  if (bias.fused_after_alpha)
    attributes.append_binary(
        dnnl::algorithm::binary_add,
        dense_descriptor(DataType::kFloat32, padded_shape({geometry.result.back()}, geometry.result.size())), 2);
}

dnnl::primitive_desc make_descriptor(const MatMulGeometry& geometry, Bias bias, const Descriptor& left,
                                     const Descriptor& right, const Descriptor& result,
                                     const dnnl::primitive_attr& attributes, const dnnl::engine& engine) {
  if (!bias.present || bias.fused_after_alpha)
    return dnnl::matmul::primitive_desc({left, right, result}, attributes, engine);
  const Descriptor shift =
      dense_descriptor(DataType::kFloat32, padded_shape({geometry.result.back()}, geometry.result.size()));
  return dnnl::matmul::primitive_desc({left, right, shift, result}, attributes, engine);
}

bool acceptable(const Descriptor& right, const Descriptor& given) {
  return right == given || (is_storable(right) && (!is_dense(right) || is_dense(given)));
}

// Plain loops, for types that oneDNN does not multiply. Integers wrap.
template <typename T>
class ProductKernel : public Kernel {
 public:
  explicit ProductKernel(const OperatorView& view)
      : a_(view.input_index(0)), b_(view.input_index(1)), to_(view.output_index()) {
    const MatMulGeometry geometry =
        geometry_of(view.attributes(), view.input(0).shape, view.input(1).shape, view.output().shape, false);
    const size_t rank = geometry.result.size();
    rows_ = geometry.result[rank - 2];
    columns_ = geometry.result[rank - 1];
    depth_ = geometry.left[rank - 1];
    a_row_ = geometry.left_strides[rank - 2], a_step_ = geometry.left_strides[rank - 1];
    b_step_ = geometry.right_strides[rank - 2], b_column_ = geometry.right_strides[rank - 1];
    const Shape batch(geometry.result.begin(), geometry.result.end() - 2);
    const auto steps = [&](const Shape& shape, const Shape& strides) {
      Shape result;
      for (size_t d = 0; d < batch.size(); ++d) result.push_back(shape[d] == 1 ? 0 : strides[d]);
      return result;
    };
    const StridedLoop<2> loop(
        batch, {steps(geometry.left, geometry.left_strides), steps(geometry.right, geometry.right_strides)});
    const auto& stride = loop.inner_strides();
    loop.run_serially([&](const auto& offsets, int64_t count) {
      for (int64_t i = 0; i < count; ++i)
        products_.emplace_back(offsets[0] + i * stride[0], offsets[1] + i * stride[1]);
    });
  }

  Status run(Addresses addresses) override {
    const T* a = reinterpret_cast<const T*>(addresses[a_]);
    const T* b = reinterpret_cast<const T*>(addresses[b_]);
    T* to = reinterpret_cast<T*>(addresses[to_]);
    const int64_t pieces = (rows_ + kProductRows - 1) / kProductRows;
    const auto count = static_cast<int64_t>(products_.size());
    parallel_for(count * pieces, count * rows_ * columns_ * depth_, [&](int64_t i) {
      const auto& [left, right] = products_[static_cast<size_t>(i / pieces)];
      const int64_t row = i % pieces * kProductRows;
      multiply({.rows = std::min(kProductRows, rows_ - row),
                .columns = columns_,
                .depth = depth_,
                .a = a + left + row * a_row_,
                .a_row = a_row_,
                .a_step = a_step_,
                .b = b + right,
                .b_step = b_step_,
                .to = to + (i / pieces * rows_ + row) * columns_});
    });
    return Status();
  }

 private:
  using Sum = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

  void multiply(const ProductRows<T>& product) const {
    if (b_column_ == 1 && columns_ > 1) return multiply_(product);
    int64_t row = 0;
    for (; row + kTogether <= product.rows; row += kTogether) multiply_rows<kTogether>(product, row);
    for (; row < product.rows; ++row) multiply_rows<1>(product, row);
  }

  // kRows rows at a time, whose sums do not wait for each other.
  template <int64_t kRows>
  void multiply_rows(const ProductRows<T>& product, int64_t row) const {
    for (int64_t column = 0; column < columns_; ++column) {
      std::array<Sum, kRows> sums{};
      for (int64_t k = 0; k < depth_; ++k) {
        const auto b = static_cast<Sum>(product.b[k * b_step_ + column * b_column_]);
        for (int64_t r = 0; r < kRows; ++r)
          sums[static_cast<size_t>(r)] += static_cast<Sum>(product.a[(row + r) * a_row_ + k * a_step_]) * b;
      }
      for (int64_t r = 0; r < kRows; ++r)
        product.to[(row + r) * columns_ + column] = static_cast<T>(sums[static_cast<size_t>(r)]);
    }
  }

  static constexpr int64_t kTogether = 8;

  const MultiplyRows<T> multiply_ = find_multiply_rows<T>();

  TensorIndex a_, b_, to_;
  int64_t rows_, columns_, depth_, a_row_, a_step_, b_step_, b_column_;
  std::vector<std::pair<int64_t, int64_t>> products_;  // where each pair of matrices begins, in elements
};

// Calls visit(std::type_identity<T>()) for the types that have no primitive.
template <typename Visit>
Status visit_product_type(DataType type, const Visit& visit) {
  switch (type) {
    case DataType::kInt32: return visit(std::type_identity<int32_t>());
    case DataType::kInt64: return visit(std::type_identity<int64_t>());
    case DataType::kFloat64: return visit(std::type_identity<double>());
    default: return Status::unimplemented(fmt::format("does not multiply matrices of {}", to_string(type)));
  }
}

Result<bool> lower_own_product(const Node& node, GraphLowering& lowering) {
  if (!node.post_operations.empty()) return false;
  FOLIOT_RETURN_IF_ERROR(visit_product_type(lowering.value(node.outputs[0]).type, [](auto) { return Status(); }));
  if (node.attributes.real("alpha") != 1 || GraphLowering::has(node, 2))
    return Status::unimplemented("multiplies and adds in one step in FP32 only");
  FOLIOT_RETURN_IF_ERROR(lowering.emit_dense(node, "foliot:matmul"));
  return true;
}

}  // namespace

Result<bool> lower_matmul(const Node& node, GraphLowering& lowering) {
  const auto type = [&](ValueIndex value) { return lowering.value(value).type; };
  if (type(node.outputs[0]) != DataType::kFloat32 && !lowering.computes_narrow(node))
    return lower_own_product(node, lowering);
  FOLIOT_RETURN_IF_ERROR(require_products(node, lowering));
  const Shape& shape = lowering.shape(node.outputs[0]);
  bool may_merge = true;
  for (const PostOperation& operation : node.post_operations)
    if (operation.kind == PostOperation::Kind::kBinary)
      may_merge = may_merge && varies_in_last_dimension_only(lowering.shape(node.inputs.at(operation.input)), shape);
  const MatMulGeometry geometry =
      geometry_of(node.attributes, lowering.shape(node.inputs[0]), lowering.shape(node.inputs[1]), shape, may_merge);
  const Bias bias = bias_of(has_bias(node.inputs, node.post_operations), node.attributes.real("alpha"));
  Fusion scale;
  append_scale(geometry, bias, node.attributes.real("alpha"), scale.attributes);
  const std::optional<Fusion> fusion = plan_fusion(node, lowering, geometry.result, std::move(scale));
  if (!fusion || (fusion->destination && !is_dense(*fusion->destination))) return false;

  const Descriptor left = strided_descriptor(type(node.inputs[0]), geometry.left, geometry.left_strides);
  const Descriptor result = dense_descriptor(type(node.outputs[0]), geometry.result);
  const Descriptor given = strided_descriptor(type(node.inputs[1]), geometry.right, geometry.right_strides);
  std::vector<Descriptor> candidates{given};
  if (lowering.value(node.inputs[1]).is_constant()) {
    candidates.insert(candidates.begin(), any_descriptor(type(node.inputs[1]), geometry.right));
    if (const auto packed = lowering.packed_layout(node.inputs[1], given))
      candidates.insert(candidates.begin(), *packed);
  }
  std::optional<dnnl::primitive_desc> chosen;
  for (const Descriptor& candidate : candidates) {
    chosen = attempt([&] {
      return make_descriptor(geometry, bias, left, candidate, result, fusion->attributes.make(), lowering.engine());
    });
    // An empty Tensor::layout means "as given", so it cannot mark a dense packing of
    // weights that were given transposed.
    if (chosen && acceptable(chosen->query_md(dnnl::query::weights_md), given)) break;
    chosen.reset();
  }
  if (!chosen && (!node.post_operations.empty() || lowering.computes_narrow(node))) return false;
  if (!chosen) return Status::unimplemented("oneDNN has no fast kernel for this matrix product");

  Operator operation = GraphLowering::begin(node);
  const Descriptor right = chosen->query_md(dnnl::query::weights_md);
  const bool as_given = right == given || is_dense(right);
  operation.inputs = {lowering.dense(node.inputs[0]),
                      as_given ? lowering.dense(node.inputs[1]) : lowering.in_layout(node.inputs[1], right, given)};
  if (bias.present) operation.inputs.push_back(lowering.dense(node.inputs[2]));
  lowering.add_post_inputs(node, operation);
  operation.outputs = {fused_result(node, lowering, *fusion, dense_descriptor(type(node.outputs[0]), shape))};
  FOLIOT_RETURN_IF_ERROR(lowering.emit(std::move(operation)));
  return true;
}

Result<PrimitiveRecipe> describe_matmul(const OperatorView& view) {
  const Operator& operation = view.operation();
  bool may_merge = true;
  for (const PostOperation& post : operation.post_operations)
    if (post.kind == PostOperation::Kind::kBinary)
      may_merge = may_merge && varies_in_last_dimension_only(view.input(post.input).shape, view.output().shape);
  const MatMulGeometry geometry =
      geometry_of(operation.attributes, view.input(0).shape, view.input(1).shape, view.output().shape, may_merge);
  const double alpha = operation.attributes.real("alpha");
  const Bias bias = bias_of(has_bias(operation.inputs, operation.post_operations), alpha);
  PrimitiveAttributes attributes;
  append_scale(geometry, bias, alpha, attributes);
  append_post_operations(view, geometry.result, attributes);
  const Descriptor left = strided_descriptor(view.input(0).type, geometry.left, geometry.left_strides);
  const Descriptor right = view.input(1).layout.empty()
                               ? strided_descriptor(view.input(1).type, geometry.right, geometry.right_strides)
                               : view.input_descriptor(1);
  PrimitiveRecipe recipe;
  recipe.descriptor =
      make_descriptor(geometry, bias, left, right, dense_descriptor(view.output().type, geometry.result),
                      attributes.make(), view.engine());
  recipe.inputs = {{DNNL_ARG_SRC, view.input_index(0)}, {DNNL_ARG_WEIGHTS, view.input_index(1)}};
  if (bias.present && !bias.fused_after_alpha) recipe.inputs.push_back({DNNL_ARG_BIAS, view.input_index(2)});
  recipe.outputs = {{DNNL_ARG_DST, view.output_index()}};
  attributes.add_arguments(view, recipe);
  return recipe;
}

Result<std::unique_ptr<Kernel>> make_matmul(const OperatorView& view) {
  std::unique_ptr<Kernel> kernel;
  FOLIOT_RETURN_IF_ERROR(visit_product_type(view.output().type, [&]<typename T>(std::type_identity<T>) {
    kernel = std::make_unique<ProductKernel<T>>(view);
    return Status();
  }));
  return kernel;
}

}  // namespace foliot
