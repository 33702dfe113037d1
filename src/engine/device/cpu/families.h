// Families: groups of operator kinds with the functions that lower and run them on the
// CPU. To add one: write its functions in a file of its own and enter them in
// families.cc.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_FAMILIES_H_
#define FOLIOT_ENGINE_DEVICE_CPU_FAMILIES_H_

#include <memory>

#include "engine/device/cpu/graph_lowering.h"
#include "engine/device/cpu/kernel.h"
#include "engine/device/cpu/operator_view.h"
#include "engine/device/cpu/primitive.h"

namespace foliot {

struct Family {
  OperatorKind kind;
  // Emits operators for a node. False: not with these post-operations fused, and
  // nothing was emitted; never false without post-operations, unless computes_narrow().
  // Errors: kUnimplemented.
  Result<bool> (*lower)(const Node& node, GraphLowering& lowering);
  // The oneDNN primitive of an operator whose tensors have their layouts.
  // Nullptr: all kernels are Foliot's own.
  Result<PrimitiveRecipe> (*describe)(const OperatorView& view);
  // Foliot's own kernel, for operators whose `kernel` has this name, which begins
  // with kOwnKernel. Nullptr and "": there is none.
  Result<std::unique_ptr<Kernel>> (*make_own)(const OperatorView& view);
  std::string_view own_name;
};

// Nullptr: no such kind.
const Family* find_family(OperatorKind kind);

inline constexpr std::string_view kOwnKernel = "foliot:";

Result<bool> lower_convolution(const Node& node, GraphLowering& lowering);
Result<PrimitiveRecipe> describe_convolution(const OperatorView& view);

Result<bool> lower_matmul(const Node& node, GraphLowering& lowering);
Result<PrimitiveRecipe> describe_matmul(const OperatorView& view);
Result<std::unique_ptr<Kernel>> make_matmul(const OperatorView& view);

Result<bool> lower_block_matmul(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_block_matmul(const OperatorView& view);

Result<bool> lower_pooling(const Node& node, GraphLowering& lowering);
Result<PrimitiveRecipe> describe_pooling(const OperatorView& view);
Result<std::unique_ptr<Kernel>> make_pooling(const OperatorView& view);

Result<bool> lower_unary(const Node& node, GraphLowering& lowering);
Result<PrimitiveRecipe> describe_unary(const OperatorView& view);
Result<std::unique_ptr<Kernel>> make_unary(const OperatorView& view);

Result<bool> lower_binary(const Node& node, GraphLowering& lowering);
Result<PrimitiveRecipe> describe_binary(const OperatorView& view);
Result<std::unique_ptr<Kernel>> make_binary(const OperatorView& view);

Result<bool> lower_affine(const Node& node, GraphLowering& lowering);
Result<PrimitiveRecipe> describe_affine(const OperatorView& view);

Result<bool> lower_softmax(const Node& node, GraphLowering& lowering);
Result<PrimitiveRecipe> describe_softmax(const OperatorView& view);
Result<std::unique_ptr<Kernel>> make_softmax(const OperatorView& view);

Result<bool> lower_attention(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_attention(const OperatorView& view);

Result<bool> lower_layer_norm(const Node& node, GraphLowering& lowering);
Result<PrimitiveRecipe> describe_layer_norm(const OperatorView& view);
Result<std::unique_ptr<Kernel>> make_layer_norm(const OperatorView& view);

Result<bool> lower_lrn(const Node& node, GraphLowering& lowering);
Result<PrimitiveRecipe> describe_lrn(const OperatorView& view);
Result<std::unique_ptr<Kernel>> make_lrn(const OperatorView& view);

Result<bool> lower_reduce(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_reduce(const OperatorView& view);

Result<bool> lower_concat(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_concat(const OperatorView& view);

Result<bool> lower_reshape(const Node& node, GraphLowering& lowering);

// Slice and Expand: what can be walked with strides.
Result<bool> lower_walking(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_strided_copy(const OperatorView& view);

Result<bool> lower_transpose(const Node& node, GraphLowering& lowering);
Result<PrimitiveRecipe> describe_transpose(const OperatorView& view);

// Whether Foliot's own copy does a reorder between these, as the faster one.
bool changes_channel_order(const Tensor& from, const Tensor& to);
Result<PrimitiveRecipe> describe_reorder(const OperatorView& view);
Result<std::unique_ptr<Kernel>> make_copy(const OperatorView& view);

Result<bool> lower_gather(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_gather(const OperatorView& view);

Result<bool> lower_gather_elements(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_gather_elements(const OperatorView& view);

Result<bool> lower_scatter_elements(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_scatter_elements(const OperatorView& view);

Result<bool> lower_top_k(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_top_k(const OperatorView& view);

Result<bool> lower_cumulative(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_cumulative(const OperatorView& view);

Result<bool> lower_recurrent(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_recurrent(const OperatorView& view);

Result<bool> lower_tree_ensemble(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_tree_ensemble(const OperatorView& view);

Result<bool> lower_pair_coupling(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_pair_coupling(const OperatorView& view);

Result<bool> lower_decode_jpeg(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_decode_jpeg(const OperatorView& view);

Result<bool> lower_word_piece(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_word_piece(const OperatorView& view);

Result<bool> lower_quantization(const Node& node, GraphLowering& lowering);
Result<PrimitiveRecipe> describe_quantization(const OperatorView& view);
Result<std::unique_ptr<Kernel>> make_quantization(const OperatorView& view);

Result<bool> lower_cast(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_cast(const OperatorView& view);

Result<bool> lower_where(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_where(const OperatorView& view);

Result<bool> lower_pad(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_pad(const OperatorView& view);

Result<bool> lower_arg_reduce(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_arg_reduce(const OperatorView& view);

Result<bool> lower_depth_to_space(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_depth_to_space(const OperatorView& view);

Result<bool> lower_resize(const Node& node, GraphLowering& lowering);
Result<std::unique_ptr<Kernel>> make_resize(const OperatorView& view);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_FAMILIES_H_
