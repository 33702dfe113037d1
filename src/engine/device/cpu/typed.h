// Dispatch from DataType to the C++ types that Foliot's own kernels compute in.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_TYPED_H_
#define FOLIOT_ENGINE_DEVICE_CPU_TYPED_H_

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "foundation/base/status.h"
#include "foundation/core/tensor.h"

namespace foliot {

// Calls visit(std::type_identity<T>()) for the type's T and returns its Status.
// Errors: kUnimplemented for types that own kernels do not compute in.
template <typename Visit>
Status visit_type(DataType type, const Visit& visit) {
  switch (type) {
    case DataType::kFloat32: return visit(std::type_identity<float>());
    case DataType::kFloat64: return visit(std::type_identity<double>());
    case DataType::kInt64: return visit(std::type_identity<int64_t>());
    case DataType::kInt32: return visit(std::type_identity<int32_t>());
    case DataType::kInt16: return visit(std::type_identity<int16_t>());
    case DataType::kInt8: return visit(std::type_identity<int8_t>());
    case DataType::kUint64: return visit(std::type_identity<uint64_t>());
    case DataType::kUint32: return visit(std::type_identity<uint32_t>());
    case DataType::kUint16: return visit(std::type_identity<uint16_t>());
    case DataType::kUint8: return visit(std::type_identity<uint8_t>());
    case DataType::kBool: return visit(std::type_identity<bool>());
    default: return Status::unimplemented(fmt::format("does not work on {}; cast it before", to_string(type)));
  }
}

// The same by size alone, for kernels that only move elements.
template <typename Visit>
Status visit_size(uint64_t bytes, const Visit& visit) {
  switch (bytes) {
    case 1: return visit(std::type_identity<uint8_t>());
    case 2: return visit(std::type_identity<uint16_t>());
    case 4: return visit(std::type_identity<uint32_t>());
    case 8: return visit(std::type_identity<uint64_t>());
    default: return Status::unimplemented(fmt::format("does not move elements of {} bytes", bytes));
  }
}

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_TYPED_H_
