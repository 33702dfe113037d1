#include "engine/compiler/operator_rates.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "engine/compiler/constant.h"
#include "engine/compiler/program_runner.h"
#include "engine/compiler/single_program.h"

namespace foliot {
namespace {

constexpr int kPlainRuns = 5;
// Of the plain operators: a product of two square matrices, and a vector.
constexpr int64_t kMatrix = 384;
constexpr int64_t kVector = int64_t{1} << 22;  // beyond the caches, as large models are

double elements(const Tensor& tensor) { return static_cast<double>(element_count(tensor.shape)); }

double bytes_of(const Plan& plan, const Operator& operation) {
  double bytes = 0;
  for (const std::vector<TensorIndex>* tensors : {&operation.inputs, &operation.outputs})
    for (const TensorIndex index : *tensors)
      if (index != kNoTensor)
        bytes += static_cast<double>(byte_size(plan.tensors[index].type, plan.tensors[index].shape));
  return bytes;
}

double products_of(const Plan& plan, const Operator& operation) {
  const Tensor& result = plan.tensors[operation.outputs.front()];
  const auto shape = [&](size_t input) -> const Shape& { return plan.tensors[operation.inputs[input]].shape; };
  switch (operation.kind) {
    case OperatorKind::kConvolution:
    case OperatorKind::kConvolutionTranspose: {
      const bool transposed = operation.kind == OperatorKind::kConvolutionTranspose;
      // Of each element of what has the channels that are the weights' first dimension.
      const Tensor& counted = transposed ? plan.tensors[operation.inputs[0]] : result;
      return elements(counted) * elements(plan.tensors[operation.inputs[1]]) / static_cast<double>(shape(1)[0]);
    }
    case OperatorKind::kMatMul: {
      const Shape& left = shape(0);
      const bool transposed = operation.attributes.integer("transpose_a") != 0;
      return elements(result) * static_cast<double>(left[left.size() - (transposed ? 2 : 1)]);
    }
    case OperatorKind::kBlockMatMul: return elements(result) * static_cast<double>(shape(0).back());
    case OperatorKind::kAttention: {
      const Shape& values = shape(2);
      const auto keys = static_cast<double>(values[values.size() - 2]);
      const auto columns = static_cast<double>(values.back());
      return elements(result) / columns * keys * (static_cast<double>(shape(0).back()) + columns);
    }
    default: return 0;
  }
}

bool works_evenly(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::kConvolution:
    case OperatorKind::kConvolutionTranspose:
    case OperatorKind::kMatMul:
    case OperatorKind::kMaxPool:
    case OperatorKind::kAveragePool:
    case OperatorKind::kUnary:
    case OperatorKind::kBinary:
    case OperatorKind::kAffine:
    case OperatorKind::kSoftmax:
    case OperatorKind::kAttention:
    case OperatorKind::kLayerNorm:
    case OperatorKind::kReduce:
    case OperatorKind::kConcat:
    case OperatorKind::kTranspose:
    case OperatorKind::kReshape:
    case OperatorKind::kCast:
    case OperatorKind::kQuantize:
    case OperatorKind::kDequantize:
    case OperatorKind::kWhere:
    case OperatorKind::kPad:
    case OperatorKind::kResize:
    case OperatorKind::kDepthToSpace:
    case OperatorKind::kReorder: return true;
    default: return false;
  }
}

Value value_of(std::string name, Shape shape) { return {.name = std::move(name), .shape = std::move(shape)}; }

Graph plain_product() {
  Value weights = value_of("weights", {kMatrix, kMatrix});
  weights.constant = make_constant(weights.shape, std::vector<float>(kMatrix * kMatrix, 0.5F)).bytes;
  Node product{.kind = OperatorKind::kMatMul, .name = "product", .inputs = {0, 1}, .outputs = {2}};
  product.attributes.set("transpose_a", int64_t{0});
  product.attributes.set("transpose_b", int64_t{0});
  product.attributes.set("alpha", 1.0);
  return {.values = {value_of("x", {kMatrix, kMatrix}), std::move(weights), value_of("y", {kMatrix, kMatrix})},
          .nodes = {std::move(product)},
          .inputs = {0},
          .outputs = {2}};
}

Graph plain_copy() {
  Node relu{.kind = OperatorKind::kUnary, .name = "copy", .inputs = {0}, .outputs = {1}};
  relu.attributes.set("function", Function::kRelu);
  return {.values = {value_of("x", {1, kVector}), value_of("y", {1, kVector})},
          .nodes = {std::move(relu)},
          .inputs = {0},
          .outputs = {1}};
}

Result<double> fastest_run(const Graph& graph, Device& device) {
  FOLIOT_ASSIGN_OR_RETURN(const SingleProgram single, lower_single(graph, device));
  FOLIOT_ASSIGN_OR_RETURN(const auto runner, ProgramRunner::create(device, single.program, single.weights));
  runner->put_input(std::vector<std::byte>(single.program.plans.front().input_bytes));
  Duration shortest = Duration::max();
  for (int run = 0; run < kPlainRuns; ++run) {
    FOLIOT_ASSIGN_OR_RETURN(const Duration taken, runner->run_range(0, {}));
    shortest = std::min(shortest, taken);
  }
  return std::max(shortest.to_seconds(), 1e-9);
}

}  // namespace

Duration OperatorRates::expect(const Plan& plan, const Operator& operation) const {
  if (!works_evenly(operation.kind)) return {};
  const double seconds =
      std::max(products_of(plan, operation) / products_per_second, bytes_of(plan, operation) / bytes_per_second);
  return Duration::from_seconds(seconds);
}

Result<OperatorRates> measure_rates(Device& device) {
  OperatorRates rates;
  const std::unique_ptr<Device> other = device.another();
  FOLIOT_ASSIGN_OR_RETURN(const double product, fastest_run(plain_product(), device));
  FOLIOT_ASSIGN_OR_RETURN(const double copy, fastest_run(plain_copy(), *other));
  rates.products_per_second = static_cast<double>(kMatrix * kMatrix * kMatrix) / product;
  rates.bytes_per_second = static_cast<double>(2 * kVector * static_cast<int64_t>(sizeof(float))) / copy;
  return rates;
}

}  // namespace foliot
