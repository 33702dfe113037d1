#include "engine/compiler/operators/element_type.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace foliot {

std::string_view onnx_type_name(int64_t number) {
  constexpr std::array<std::string_view, 27> kNames{
      "UNDEFINED", "FLOAT",      "UINT8",      "INT8",         "UINT16",         "INT16",      "INT32",
      "INT64",     "STRING",     "BOOL",       "FLOAT16",      "DOUBLE",         "UINT32",     "UINT64",
      "COMPLEX64", "COMPLEX128", "BFLOAT16",   "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ",
      "UINT4",     "INT4",       "FLOAT4E2M1", "FLOAT8E8M0",   "UINT2",          "INT2"};
  return number >= 0 && static_cast<size_t>(number) < kNames.size() ? kNames[static_cast<size_t>(number)]
                                                                    : "of no known name";
}

Result<DataType> element_type(int64_t number) {
  static constexpr std::array<std::pair<int64_t, DataType>, 13> kTypes{{{1, DataType::kFloat32},
                                                                        {2, DataType::kUint8},
                                                                        {3, DataType::kInt8},
                                                                        {4, DataType::kUint16},
                                                                        {5, DataType::kInt16},
                                                                        {6, DataType::kInt32},
                                                                        {7, DataType::kInt64},
                                                                        {9, DataType::kBool},
                                                                        {10, DataType::kFloat16},
                                                                        {11, DataType::kFloat64},
                                                                        {12, DataType::kUint32},
                                                                        {13, DataType::kUint64},
                                                                        {16, DataType::kBfloat16}}};
  for (const auto& [candidate, type] : kTypes) {
    if (candidate == number) return type;
  }
  return Status::unimplemented(
      fmt::format("ONNX element type {} is not supported ({})", number, onnx_type_name(number)));
}

}  // namespace foliot
