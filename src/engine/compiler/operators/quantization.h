// Codes of quantised tensors and what they mean: (code - zero point) * scale.
#ifndef FOLIOT_ENGINE_COMPILER_OPERATORS_QUANTIZATION_H_
#define FOLIOT_ENGINE_COMPILER_OPERATORS_QUANTIZATION_H_

#include <cstdint>

#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/node_translation.h"
#include "foundation/core/tensor.h"

namespace foliot {

// A zero point of kNoValue is 0.
struct QuantizedOperand {
  ValueIndex codes, scale, zero_point;
};

// In float32. Scale and zero point are of the whole or of each entry of dimension `axis`.
// What is known when compiling becomes the device's own operator, into which passes fuse.
ValueIndex dequantize(NodeTranslation& node, Composer& c, const QuantizedOperand& x, int64_t axis = 0);

// Codes of the zero point's type, or uint8, with one scale: rounded, and kept within the type.
ValueIndex quantize(NodeTranslation& node, Composer& c, ValueIndex x, ValueIndex scale, ValueIndex zero_point);

// To uint8, with the scale that the range of x (which includes 0) asks for.
QuantizedOperand quantize_dynamically(Composer& c, ValueIndex x);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_OPERATORS_QUANTIZATION_H_
