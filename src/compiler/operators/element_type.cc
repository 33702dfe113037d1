#include "compiler/operators/element_type.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace foliot {

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
  return Status::unimplemented(fmt::format("ONNX element type {} is not supported", number));
}

}  // namespace foliot
