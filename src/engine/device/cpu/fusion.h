// Fusion: the form of a node's post-operations for the primitive that computes it.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_FUSION_H_
#define FOLIOT_ENGINE_DEVICE_CPU_FUSION_H_

#include <optional>
#include <vector>

#include "engine/device/cpu/graph_lowering.h"
#include "engine/device/cpu/primitive.h"

namespace foliot {

struct Fusion {
  PrimitiveAttributes attributes;
  // A full-size operand imposes its layout on the result.
  std::optional<Descriptor> destination;
  // The operand that the result is written over.
  ValueIndex overwritten = kNoValue;
};

// Convolutions keep functions that lose NaN as post-operations: another pass over an image costs more than a tenth.
bool convolves(OperatorKind kind);

// Nullopt: not with oneDNN, or not without losing NaN. `result` is the shape under which the primitive sees
// the result; it has as many elements as the node's. `fusion` may hold attributes
// already, which come first.
std::optional<Fusion> plan_fusion(const Node& node, const GraphLowering& lowering, const Shape& result,
                                  Fusion fusion = {});

// Makes the tensor that the fused primitive writes to.
TensorIndex fused_result(const Node& node, GraphLowering& lowering, const Fusion& fusion, const Descriptor& layout);

// The same attributes from a lowered operator.
void append_post_operations(const OperatorView& view, const Shape& result, PrimitiveAttributes& attributes);

// Position 2 of the inputs is the bias, unless left out or read by a post-operation.
template <typename Index>
bool has_bias(const std::vector<Index>& inputs, const std::vector<PostOperation>& operations) {
  if (inputs.size() < 3 || inputs[2] == ~Index{0}) return false;
  for (const PostOperation& operation : operations)
    if (operation.kind == PostOperation::Kind::kBinary && operation.input == 2) return false;
  return true;
}

// Whether products of X and W into Y are among those of OperatorKind::kConvolution,
// with a float32 bias and operands that oneDNN can read. Errors: kUnimplemented.
Status require_products(const Node& node, const GraphLowering& lowering);

// Errors: kUnimplemented if an input or output is not float32.
Status require_float32(const Node& node, const GraphLowering& lowering);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_FUSION_H_
