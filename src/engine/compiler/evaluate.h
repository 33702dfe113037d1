// Evaluation of operators whose operands are all constants: the shape
// arithmetic of exporters, and weights that a model prepares itself.
#ifndef FOLIOT_ENGINE_COMPILER_EVALUATE_H_
#define FOLIOT_ENGINE_COMPILER_EVALUATE_H_

#include <optional>
#include <span>

#include "engine/compiler/constant.h"
#include "engine/compiler/value_type.h"
#include "engine/device/operator.h"

namespace foliot {

// The result, of type `type`; nullopt for operators that are left to the device
// (convolutions, matrix products and the like). REQUIRES: operands and type as
// infer() accepts them.
std::optional<Constant> evaluate(OperatorKind kind, std::span<const Constant> inputs, const Attributes& attributes,
                                 const ValueType& type);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_EVALUATE_H_
