// Matrix products.
#include <fmt/format.h>

#include "engine/compiler/operators/onnx_operator.h"

namespace foliot {
namespace {

Attributes product_attributes(bool transpose_a, bool transpose_b, double alpha) {
  Attributes attributes;
  attributes.set("transpose_a", int64_t{transpose_a});
  attributes.set("transpose_b", int64_t{transpose_b});
  attributes.set("alpha", alpha);
  return attributes;
}

// Vectors become matrices for the product, and the dimension they gained is
// dropped again, as in numpy.
Status matrix_product(NodeTranslation& node) {
  GraphBuilder& builder = node.builder();
  const Shape a_shape = node.shape(0);
  const Shape b_shape = node.shape(1);
  if (a_shape.empty() || b_shape.empty()) return Status::invalid_argument("a scalar is not a matrix");
  ValueIndex a = node.input(0);
  ValueIndex b = node.input(1);
  if (a_shape.size() == 1) {
    FOLIOT_ASSIGN_OR_RETURN(a, builder.reshape(a, {1, a_shape[0]}));
  }
  if (b_shape.size() == 1) {
    FOLIOT_ASSIGN_OR_RETURN(b, builder.reshape(b, {b_shape[0], 1}));
  }
  FOLIOT_ASSIGN_OR_RETURN(ValueIndex product,
                          builder.emit(OperatorKind::kMatMul, {a, b}, product_attributes(false, false, 1)));
  Shape shape = builder.value(product).shape;
  if (b_shape.size() == 1) shape.pop_back();
  if (a_shape.size() == 1) shape.erase(shape.end() - (b_shape.size() == 1 ? 1 : 2));
  return node.finish(builder.reshape(product, std::move(shape)));
}

// Whether C of Gemm is a vector that is added to every row.
bool is_row(const Shape& shape, int64_t columns) {
  return !shape.empty() && shape.back() == columns && element_count(shape) == static_cast<uint64_t>(columns);
}

// alpha * A' * B' + beta * C
Status general_product(NodeTranslation& node) {
  GraphBuilder& builder = node.builder();
  if (node.rank(0) != 2 || node.rank(1) != 2) {
    return Status::invalid_argument(
        fmt::format("{} and {} are not matrices", to_string(node.shape(0)), to_string(node.shape(1))));
  }
  const double alpha = node.real("alpha", 1);
  // Devices scale and add in one step in float32 only.
  const DataType type = node.value(0).type;
  const bool apart = type == DataType::kFloat64 || is_integer(type);
  const Attributes attributes =
      product_attributes(node.integer("transA", 0) != 0, node.integer("transB", 0) != 0, apart ? 1 : alpha);
  const auto multiply = [&](std::vector<ValueIndex> operands) -> Result<ValueIndex> {
    FOLIOT_ASSIGN_OR_RETURN(const ValueIndex product,
                            builder.emit(OperatorKind::kMatMul, std::move(operands), attributes));
    return apart && alpha != 1 ? builder.unary(Function::kLinear, product, alpha, 0) : product;
  };
  const double beta = node.real("beta", 1);
  std::vector<ValueIndex> inputs{node.input(0), node.input(1)};
  if (!node.has_input(2) || beta == 0) {
    return node.finish(multiply(std::move(inputs)));
  }
  ValueIndex addend = node.input(2);
  if (beta != 1) {
    FOLIOT_ASSIGN_OR_RETURN(addend, builder.unary(Function::kLinear, addend, beta, 0));
  }
  const int64_t columns = node.shape(1)[node.integer("transB", 0) != 0 ? 0 : 1];
  if (!apart && is_row(builder.value(addend).shape, columns)) {
    FOLIOT_ASSIGN_OR_RETURN(addend, builder.reshape(addend, {columns}));
    inputs.push_back(addend);
    return node.finish(multiply(std::move(inputs)));
  }
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex product, multiply(std::move(inputs)));
  const Shape shape = builder.value(product).shape;
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex sum, builder.binary(Function::kAdd, product, addend));
  if (builder.value(sum).shape != shape) return Status::invalid_argument("C does not fit the product");
  node.set_output(0, sum);
  return {};
}

constexpr OnnxOperator kMatrixOperators[] = {
    {"MatMul", 2, 2, matrix_product},
    {"Gemm", 2, 3, general_product},
};

}  // namespace

std::span<const OnnxOperator> matrix_operators() { return kMatrixOperators; }

}  // namespace foliot
