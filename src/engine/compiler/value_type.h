// ValueType: the type and shape of a value, and how an operator's result gets
// them from its operands.
#ifndef FOLIOT_ENGINE_COMPILER_VALUE_TYPE_H_
#define FOLIOT_ENGINE_COMPILER_VALUE_TYPE_H_

#include <span>

#include "engine/device/graph.h"
#include "engine/device/operator.h"
#include "foundation/base/status.h"
#include "foundation/core/tensor.h"

namespace foliot {

struct ValueType {
  DataType type = DataType::kFloat32;
  Shape shape;
};

// The element type in which operators of a kind compute on operands of `type`:
// float32 for narrower floats, `type` itself where a device computes in it or
// only moves elements. GraphBuilder::emit() casts there and back.
DataType compute_type(OperatorKind kind, DataType type);

// What an operator makes of `inputs` (nullptr where left out), for all kinds
// whose result follows from operands and attributes alone. Errors:
// kInvalidArgument where operands do not fit each other, kUnimplemented for
// element types.
//
// REQUIRES: not kConvolutionTranspose, kReshape, kSlice, kCast, kQuantize,
// kDequantize, kExpand, kPad, kTopK, kRecurrent, kTreeEnsemble, kPairCoupling, kDecodeJpeg, kWordPiece, kAttention,
// kBlockMatMul, kResize, kDepthToSpace or kReorder, whose result is given to them.
Result<ValueType> infer(OperatorKind kind, std::span<const Value* const> inputs, const Attributes& attributes);

// numpy's rule.
Result<Shape> broadcast(const Shape& a, const Shape& b);

// Whether a tensor of this shape can exist at all: extents that are not
// negative and a size that can be addressed.
Status check_shape(DataType type, const Shape& shape);

// The output extent of a window that slides over one dimension. kInvalidArgument
// if it does not fit once.
Result<int64_t> window_extent(int64_t input, int64_t kernel, int64_t stride, int64_t dilation, int64_t pads);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_VALUE_TYPE_H_
