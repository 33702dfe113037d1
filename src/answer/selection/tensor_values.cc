#include "answer/selection/tensor_values.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// Calls `use` with a value of the C++ type.
auto with_type(DataType type, const auto& use) {
  switch (type) {
    case DataType::kBool:
    case DataType::kUint8: return use(uint8_t{});
    case DataType::kUint16: return use(uint16_t{});
    case DataType::kUint32: return use(uint32_t{});
    case DataType::kUint64: return use(uint64_t{});
    case DataType::kInt8: return use(int8_t{});
    case DataType::kInt16: return use(int16_t{});
    case DataType::kInt32: return use(int32_t{});
    case DataType::kInt64: return use(int64_t{});
    case DataType::kFloat32: return use(float{});
    case DataType::kFloat64: return use(double{});
    case DataType::kFloat16:
    case DataType::kBfloat16:
    case DataType::kBytes: break;
  }
  FOLIOT_CHECK(false);
}

template <typename T>
T clipped(double value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    // The largest of 64 bits is no double: its neighbour above does not fit.
    constexpr auto kLow = static_cast<double>(std::numeric_limits<T>::min());
    constexpr auto kHigh = static_cast<double>(std::numeric_limits<T>::max());
    if (std::isnan(value)) return T{};
    if (value >= kHigh) return std::numeric_limits<T>::max();
    return static_cast<T>(std::max(value, kLow));
  }
}

}  // namespace

bool is_number(DataType type) { return type == DataType::kFloat32 || type == DataType::kFloat64; }
bool is_label(DataType type) {
  return !is_number(type) && type != DataType::kFloat16 && type != DataType::kBfloat16 && type != DataType::kBytes;
}

std::vector<double> to_doubles(DataType type, std::string_view bytes) {
  return with_type(type, [&](auto zero) {
    std::vector<decltype(zero)> values(bytes.size() / sizeof zero);
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof zero);
    return std::vector<double>(values.begin(), values.end());
  });
}

std::string from_doubles(DataType type, std::span<const double> values) {
  return with_type(type, [&](auto zero) {
    std::string bytes(values.size() * sizeof zero, '\0');
    for (size_t i = 0; i < values.size(); ++i) {
      const auto value = clipped<decltype(zero)>(values[i]);
      std::memcpy(bytes.data() + i * sizeof zero, &value, sizeof zero);
    }
    return bytes;
  });
}

}  // namespace foliot
