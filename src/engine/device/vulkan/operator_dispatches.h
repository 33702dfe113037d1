// Operator dispatches: the runs of shaders that one operator of a plan is, in order. Whether an operator can be run is
// known here and nowhere else: lowering asks before there are offsets, preparing when there are.
#ifndef FOLIOT_ENGINE_DEVICE_VULKAN_OPERATOR_DISPATCHES_H_
#define FOLIOT_ENGINE_DEVICE_VULKAN_OPERATOR_DISPATCHES_H_

#include <string_view>
#include <vector>

#include "engine/device/plan.h"
#include "engine/device/vulkan/dispatch.h"
#include "foundation/base/status.h"

namespace foliot {

// An operator with its tensors.
struct OperatorTensors {
  const Operator& operation;
  const std::vector<Tensor>& tensors;

  bool has(size_t i) const { return i < operation.inputs.size() && operation.inputs[i] != kNoTensor; }
  const Tensor& input(size_t i) const { return tensors.at(operation.inputs.at(i)); }
  const Tensor& output() const { return tensors.at(operation.outputs.at(0)); }
  const Attributes& attributes() const { return operation.attributes; }
  // Input 2 is one unless a post-operation reads it.
  bool has_bias() const;
};

// Empty for a result without elements. Errors: kUnimplemented with what is missing; kInvalidArgument for shapes that
// do not agree. REQUIRES: the operator has the attributes and tensors that its kind demands (plan_check.h).
Result<std::vector<Dispatch>> operator_dispatches(const OperatorTensors& of);

// The name of the shader that does the main part of an operator of this kind; empty: there is none.
std::string_view kernel_of(OperatorKind kind);

// Layouts of packed weights: "columns4:E" and "taps4:E" of E elements (shaders/product.comp, convolution.comp).
inline constexpr std::string_view kPackedColumns = "columns4:";
inline constexpr std::string_view kPackedTaps = "taps4:";

// ---- By family, for operator_dispatches().

// Appends what post-operations from `first` on do to the result, in place.
Status append_post_operations(const OperatorTensors& of, size_t first, std::vector<Dispatch>& dispatches);
// Puts post-operations into the epilogue of a shader whose result has its channels (or columns) in dimension `channel`;
// returns how many fitted.
size_t fuse_epilogue(const OperatorTensors& of, size_t channel, DispatchBuilder& builder);

Result<std::vector<Dispatch>> pointwise_dispatches(const OperatorTensors& of);
Result<std::vector<Dispatch>> product_dispatches(const OperatorTensors& of);
Result<std::vector<Dispatch>> attention_dispatches(const OperatorTensors& of);
Result<std::vector<Dispatch>> convolution_dispatches(const OperatorTensors& of);
Result<std::vector<Dispatch>> pool_dispatches(const OperatorTensors& of);
Result<std::vector<Dispatch>> row_dispatches(const OperatorTensors& of);
Result<std::vector<Dispatch>> move_dispatches(const OperatorTensors& of);
Result<std::vector<Dispatch>> resize_dispatches(const OperatorTensors& of);

// Of float32 scores over their last dimension, in place.
Result<Dispatch> softmax_over_last(const Tensor& scores);
// Y = A + B, broadcast.
Result<Dispatch> sum_of(const Tensor& a, const Tensor& b, const Tensor& y);

Status needs_float32(const OperatorTensors& of);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_VULKAN_OPERATOR_DISPATCHES_H_
