// The element types of ONNX by their numbers (TensorProto.DataType), as they
// stand in attributes.
#ifndef FOLIOT_ENGINE_COMPILER_OPERATORS_ELEMENT_TYPE_H_
#define FOLIOT_ENGINE_COMPILER_OPERATORS_ELEMENT_TYPE_H_

#include <cstdint>
#include <string_view>

#include "foundation/base/status.h"
#include "foundation/core/tensor.h"

namespace foliot {

// Errors: kUnimplemented for those that no tensor here can have.
Result<DataType> element_type(int64_t number);

// "FLOAT", also of types that no tensor here can have.
std::string_view onnx_type_name(int64_t number);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_OPERATORS_ELEMENT_TYPE_H_
