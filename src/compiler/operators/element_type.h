// The element types of ONNX by their numbers (TensorProto.DataType), as they
// stand in attributes.
#ifndef FOLIOT_COMPILER_OPERATORS_ELEMENT_TYPE_H_
#define FOLIOT_COMPILER_OPERATORS_ELEMENT_TYPE_H_

#include <cstdint>

#include "base/status.h"
#include "core/tensor.h"

namespace foliot {

// Errors: kUnimplemented for those that no tensor here can have.
Result<DataType> element_type(int64_t number);

}  // namespace foliot

#endif  // FOLIOT_COMPILER_OPERATORS_ELEMENT_TYPE_H_
