#include "foundation/core/stage_condition.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "foundation/base/check.h"

namespace foliot {
namespace {

double from_float16(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

// `read` makes a double of the bits of an element.
template <typename Bits, typename Read>
double value_of(const StageCondition& condition, std::span<const std::byte> row, Read read) {
  const auto at = [&](size_t i) {
    Bits bits;
    std::memcpy(&bits, row.data() + i * sizeof(Bits), sizeof(Bits));
    return static_cast<double>(read(bits));
  };
  if (condition.value == StageCondition::Value::kElement) return at(condition.element);
  size_t first = 0;
  double maximum = std::numeric_limits<double>::quiet_NaN();
  for (size_t i = 0; i < row.size() / sizeof(Bits); ++i) {
    const double element = at(i);
    if (element > maximum || (std::isnan(maximum) && !std::isnan(element))) {
      maximum = element;
      first = i;
    }
  }
  if (condition.value == StageCondition::Value::kMaximum || std::isnan(maximum)) return maximum;
  return static_cast<double>(first);
}

template <typename T>
double value_of(const StageCondition& condition, std::span<const std::byte> row) {
  return value_of<T>(condition, row, [](T value) { return value; });
}

}  // namespace

double value_of(const StageCondition& condition, DataType type, std::span<const std::byte> row) {
  switch (type) {
    case DataType::kBool:
    case DataType::kUint8: return value_of<uint8_t>(condition, row);
    case DataType::kUint16: return value_of<uint16_t>(condition, row);
    case DataType::kUint32: return value_of<uint32_t>(condition, row);
    case DataType::kUint64: return value_of<uint64_t>(condition, row);
    case DataType::kInt8: return value_of<int8_t>(condition, row);
    case DataType::kInt16: return value_of<int16_t>(condition, row);
    case DataType::kInt32: return value_of<int32_t>(condition, row);
    case DataType::kInt64: return value_of<int64_t>(condition, row);
    case DataType::kFloat16: return value_of<uint16_t>(condition, row, from_float16);
    case DataType::kBfloat16:
      return value_of<uint16_t>(condition, row,
                                [](uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); });
    case DataType::kFloat32: return value_of<float>(condition, row);
    case DataType::kFloat64: return value_of<double>(condition, row);
    case DataType::kBytes: break;
  }
  FOLIOT_CHECK(false);
}

bool holds(const StageCondition& condition, DataType type, std::span<const std::byte> row) {
  const double value = value_of(condition, type, row);
  switch (condition.comparison) {
    case StageCondition::Comparison::kBelow: return value < condition.limit;
    case StageCondition::Comparison::kAtMost: return value <= condition.limit;
    case StageCondition::Comparison::kAbove: return value > condition.limit;
    case StageCondition::Comparison::kAtLeast: return value >= condition.limit;
    case StageCondition::Comparison::kEqual: return value == condition.limit;
    case StageCondition::Comparison::kNotEqual: return value != condition.limit;
  }
  FOLIOT_CHECK(false);
}

}  // namespace foliot
