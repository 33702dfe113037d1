#include "engine/device/vulkan/operator_dispatches.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/device/vulkan/walk.h"

namespace foliot {

bool OperatorTensors::has_bias() const {
  if (!has(2)) return false;
  return std::ranges::none_of(operation.post_operations, [](const PostOperation& post) {
    return post.kind == PostOperation::Kind::kBinary && post.input == 2;
  });
}

Status needs_float32(const OperatorTensors& of) {
  const auto check = [](const Tensor& tensor) {
    if (tensor.type == DataType::kFloat32) return Status();
    return Status::unimplemented(fmt::format("it computes in {}, and only FP32 is possible", to_string(tensor.type)));
  };
  for (size_t i = 0; i < of.operation.inputs.size(); ++i)
    if (of.has(i)) FOLIOT_RETURN_IF_ERROR(check(of.input(i)));
  return check(of.output());
}

std::string_view kernel_of(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::kUnary:
    case OperatorKind::kBinary:
    case OperatorKind::kWhere:
    case OperatorKind::kCast: return to_string(Shader::kPointwise);
    case OperatorKind::kMatMul:
    case OperatorKind::kAttention: return to_string(Shader::kProduct);
    case OperatorKind::kConvolution:
    case OperatorKind::kConvolutionTranspose: return to_string(Shader::kConvolution);
    case OperatorKind::kMaxPool:
    case OperatorKind::kAveragePool: return to_string(Shader::kPool);
    case OperatorKind::kSoftmax:
    case OperatorKind::kLayerNorm:
    case OperatorKind::kReduce:
    case OperatorKind::kArgReduce: return to_string(Shader::kRows);
    case OperatorKind::kConcat:
    case OperatorKind::kSlice:
    case OperatorKind::kTranspose:
    case OperatorKind::kReshape:
    case OperatorKind::kReorder:
    case OperatorKind::kExpand:
    case OperatorKind::kPad:
    case OperatorKind::kGather:
    case OperatorKind::kDepthToSpace: return to_string(Shader::kMove);
    case OperatorKind::kResize: return to_string(Shader::kResize);
    default: return {};
  }
}

Result<std::vector<Dispatch>> operator_dispatches(const OperatorTensors& of) {
  if (element_count(of.output().shape) == 0) return std::vector<Dispatch>();
  switch (of.operation.kind) {
    case OperatorKind::kUnary:
    case OperatorKind::kBinary:
    case OperatorKind::kWhere:
    case OperatorKind::kCast: return pointwise_dispatches(of);
    case OperatorKind::kMatMul: return product_dispatches(of);
    case OperatorKind::kAttention: return attention_dispatches(of);
    case OperatorKind::kConvolution:
    case OperatorKind::kConvolutionTranspose: return convolution_dispatches(of);
    case OperatorKind::kMaxPool:
    case OperatorKind::kAveragePool: return pool_dispatches(of);
    case OperatorKind::kSoftmax:
    case OperatorKind::kLayerNorm:
    case OperatorKind::kReduce:
    case OperatorKind::kArgReduce: return row_dispatches(of);
    case OperatorKind::kConcat:
    case OperatorKind::kSlice:
    case OperatorKind::kTranspose:
    case OperatorKind::kReshape:
    case OperatorKind::kReorder:
    case OperatorKind::kExpand:
    case OperatorKind::kPad:
    case OperatorKind::kGather:
    case OperatorKind::kDepthToSpace: return move_dispatches(of);
    case OperatorKind::kResize: return resize_dispatches(of);
    default: return Status::unimplemented("there is no shader for it");
  }
}

}  // namespace foliot
