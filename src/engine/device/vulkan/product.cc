// Products of matrices, and attention, which is two of them.
#include <fmt/format.h>

#include <algorithm>

#include "engine/device/vulkan/operator_dispatches.h"
#include "engine/device/vulkan/walk.h"

namespace foliot {
namespace {

// Ids of constants, as in shaders/product.comp.
constexpr size_t kRows = 16, kTurnA = 17, kTurnB = 18, kHasBias = 19, kProductAlpha = 20, kPackedB = 21;
constexpr size_t kBatchRank = 3;

struct Product {
  int64_t m = 0, n = 0, k = 0;
  bool turn_a = false, turn_b = false;
  double alpha = 1;
  Walk batch;
};

Shape leading(const Shape& shape) { return {shape.begin(), shape.end() - 2}; }

// In elements, of the dimensions before the last two.
std::vector<int64_t> matrix_strides(const Shape& shape, const Shape& batch) {
  std::vector<int64_t> strides = broadcast_strides(leading(shape), batch);
  for (int64_t& stride : strides) stride *= shape[shape.size() - 2] * shape.back();
  return strides;
}

Result<Product> product_of(const Tensor& a, const Tensor& b, const Tensor& y, bool turn_a, bool turn_b, double alpha) {
  const Status wrong = Status::invalid_argument("the shapes of a product do not agree");
  if (a.shape.size() < 2 || b.shape.size() < 2 || y.shape.size() < 2) return wrong;
  const auto extent = [](const Shape& shape, bool last) { return last ? shape.back() : shape[shape.size() - 2]; };
  Product product{.m = extent(y.shape, false),
                  .n = y.shape.back(),
                  .k = extent(a.shape, !turn_a),
                  .turn_a = turn_a,
                  .turn_b = turn_b,
                  .alpha = alpha,
                  .batch = {}};
  if (extent(a.shape, turn_a) != product.m || extent(b.shape, turn_b) != product.k ||
      extent(b.shape, !turn_b) != product.n) {
    return wrong;
  }
  const Shape batch = leading(y.shape);
  if (!broadcasts_to(leading(a.shape), batch) || !broadcasts_to(leading(b.shape), batch)) return wrong;
  const bool one_b = element_count(leading(b.shape)) == 1;
  if (one_b && !turn_a && element_count(leading(a.shape)) == element_count(batch)) {
    product.m *= static_cast<int64_t>(element_count(batch));
    product.batch = {{1}, {{0}, {0}}};
    return product;
  }
  FOLIOT_ASSIGN_OR_RETURN(
      product.batch, merged_walk(batch, {matrix_strides(a.shape, batch), matrix_strides(b.shape, batch)}, kBatchRank));
  return product;
}

// Right-aligned, with ones before.
std::vector<int64_t> padded(std::vector<int64_t> values, int64_t with) {
  values.insert(values.begin(), kBatchRank - values.size(), with);
  return values;
}

Status describe(const Product& product, const Tensor& a, const Tensor& b, const Tensor& y, DispatchBuilder& builder) {
  if (static_cast<uint64_t>(product.k) > kLoopRoundsMax) {
    return Status::unimplemented(fmt::format("it sums up {} products, and {} are possible", product.k, kLoopRoundsMax));
  }
  builder.constant(kTurnA, product.turn_a);
  builder.constant(kTurnB, product.turn_b);
  builder.real(kProductAlpha, product.alpha);
  const uint32_t rows = product.m >= 8   ? 8
                        : product.m >= 4 ? 4
                                         : static_cast<uint32_t>(std::max<int64_t>(product.m, 1));
  builder.constant(kRows, rows);
  builder.words(5,
                {static_cast<uint64_t>(product.m), static_cast<uint64_t>(product.n), static_cast<uint64_t>(product.k)});
  builder.words(8, padded(product.batch.extents, 1));
  builder.words(11, padded(product.batch.strides[0], 0));
  builder.words(14, padded(product.batch.strides[1], 0));
  if (!b.layout.empty()) {
    if (!b.layout.starts_with(kPackedColumns) || product.n % 4 != 0 || element_count(leading(b.shape)) != 1) {
      return Status::invalid_argument("weights packed for another kernel");
    }
    builder.constant(kPackedB, 1);
  }
  builder.read(0, a);
  builder.read(1, b);
  builder.write(y);
  return {};
}

uint64_t invocations(const Product& product) {
  const int64_t rows = std::clamp<int64_t>(product.m >= 8 ? 8 : product.m >= 4 ? 4 : product.m, 1, 8);
  int64_t count = (product.m + rows - 1) / rows * ((product.n + 3) / 4);
  for (const int64_t extent : product.batch.extents) count *= extent;
  return static_cast<uint64_t>(count);
}

Result<Dispatch> product_dispatch(const Tensor& a, const Tensor& b, const Tensor& y, bool turn_b, double alpha) {
  FOLIOT_ASSIGN_OR_RETURN(const Product product, product_of(a, b, y, false, turn_b, alpha));
  DispatchBuilder builder(Shader::kProduct);
  FOLIOT_RETURN_IF_ERROR(describe(product, a, b, y, builder));
  return builder.over(invocations(product));
}

}  // namespace

Result<std::vector<Dispatch>> product_dispatches(const OperatorTensors& of) {
  FOLIOT_RETURN_IF_ERROR(needs_float32(of));
  const Tensor& y = of.output();
  const Attributes& attributes = of.attributes();
  FOLIOT_ASSIGN_OR_RETURN(const Product product,
                          product_of(of.input(0), of.input(1), y, attributes.integer("transpose_a") != 0,
                                     attributes.integer("transpose_b") != 0, attributes.real("alpha")));
  DispatchBuilder builder(Shader::kProduct);
  FOLIOT_RETURN_IF_ERROR(describe(product, of.input(0), of.input(1), y, builder));
  if (of.has_bias()) {
    if (element_count(of.input(2).shape) != static_cast<uint64_t>(product.n)) {
      return Status::invalid_argument("a bias of another length than the result's rows");
    }
    builder.constant(kHasBias, 1);
    builder.read(2, of.input(2));
  }
  const size_t fused = fuse_epilogue(of, y.shape.size() - 1, builder);
  std::vector<Dispatch> dispatches;
  FOLIOT_ASSIGN_OR_RETURN(Dispatch dispatch, builder.over(invocations(product)));
  dispatches.push_back(std::move(dispatch));
  FOLIOT_RETURN_IF_ERROR(append_post_operations(of, fused, dispatches));
  return dispatches;
}

// The scores are stored in the operator's scratchpad.
Result<std::vector<Dispatch>> attention_dispatches(const OperatorTensors& of) {
  FOLIOT_RETURN_IF_ERROR(needs_float32(of));
  const Tensor &q = of.input(0), &k = of.input(1), &v = of.input(2), &y = of.output();
  if (of.operation.scratchpad == kNoTensor) return Status::invalid_argument("attention without a scratchpad");
  Tensor scores = of.tensors.at(of.operation.scratchpad);
  scores.shape = y.shape;
  scores.shape.back() = v.shape[v.shape.size() - 2];
  if (scores.bytes < byte_size(DataType::kFloat32, scores.shape) || scores.type != DataType::kFloat32) {
    return Status::invalid_argument("the scratchpad of attention is too small");
  }
  std::vector<Dispatch> dispatches;
  const auto add = [&](Result<Dispatch> dispatch) -> Status {
    if (!dispatch.ok()) return dispatch.status();
    dispatches.push_back(std::move(dispatch).value());
    return {};
  };
  const bool transposed = of.attributes().integer("transpose_k") != 0;
  FOLIOT_RETURN_IF_ERROR(add(product_dispatch(q, k, scores, !transposed, of.attributes().real("alpha"))));
  if (of.has(3)) FOLIOT_RETURN_IF_ERROR(add(sum_of(scores, of.input(3), scores)));
  FOLIOT_RETURN_IF_ERROR(add(softmax_over_last(scores)));
  FOLIOT_RETURN_IF_ERROR(add(product_dispatch(scores, v, y, false, 1)));
  FOLIOT_RETURN_IF_ERROR(append_post_operations(of, 0, dispatches));
  return dispatches;
}

}  // namespace foliot
