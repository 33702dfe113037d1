// Attributes that convolving operators have in common.
#ifndef FOLIOT_ENGINE_COMPILER_OPERATORS_CONVOLUTION_H_
#define FOLIOT_ENGINE_COMPILER_OPERATORS_CONVOLUTION_H_

#include <cstddef>

#include "engine/compiler/operators/node_translation.h"
#include "engine/device/operator.h"
#include "foundation/base/status.h"

namespace foliot {

// The attributes of a kConvolution from the node's own, which has its input at
// position `x` and its weights at position `w`. Errors where they do not fit.
Result<Attributes> convolution_attributes(NodeTranslation& node, size_t x, size_t w);

// The average pool of `x`, by the attributes of a node whose input 0 has the same shape; with
// `whole`, one window as large as the input.
Result<ValueIndex> average_pool(NodeTranslation& node, ValueIndex x, bool whole);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_OPERATORS_CONVOLUTION_H_
