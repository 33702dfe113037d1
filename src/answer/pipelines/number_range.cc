#include "answer/pipelines/number_range.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "foundation/base/check.h"

namespace foliot {
namespace {

template <typename T>
NumberRange range() {
  const auto lowest = static_cast<double>(std::numeric_limits<T>::lowest());
  auto highest = static_cast<double>(std::numeric_limits<T>::max());
  // Of 64 bits it is rounded up, to a number that the type cannot hold.
  if (std::is_integral_v<T> && std::numeric_limits<T>::digits > std::numeric_limits<double>::digits) {
    highest = std::nextafter(highest, 0);
  }
  return {lowest, highest, std::is_integral_v<T>};
}

}  // namespace

bool NumberRange::contains(double number) const {
  return number >= lowest && number <= highest && (!whole || std::trunc(number) == number);
}

NumberRange range_of(DataType type) {
  switch (type) {
    case DataType::kBool: return {0, 1, true};
    case DataType::kUint8: return range<uint8_t>();
    case DataType::kUint16: return range<uint16_t>();
    case DataType::kUint32: return range<uint32_t>();
    case DataType::kUint64: return range<uint64_t>();
    case DataType::kInt8: return range<int8_t>();
    case DataType::kInt16: return range<int16_t>();
    case DataType::kInt32: return range<int32_t>();
    case DataType::kInt64: return range<int64_t>();
    case DataType::kFloat16: return {-65504, 65504, false};
    case DataType::kBfloat16: return {-0x1.FEp127, 0x1.FEp127, false};
    case DataType::kFloat32: return range<float>();
    case DataType::kFloat64: return range<double>();
    case DataType::kBytes: break;
  }
  FOLIOT_CHECK(false);
}

}  // namespace foliot
