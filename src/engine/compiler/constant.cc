#include "engine/compiler/constant.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/base/hash.h"

namespace foliot {
namespace {

// 16-bit floats as their bits.
struct Float16 {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};

double widen(Float16 half) {
  const int exponent = (half.bits >> 10) & 0x1f;
  const int fraction = half.bits & 0x3ff;
  double magnitude = 0;
  if (exponent == 0x1f) {
    magnitude = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, -24);
  } else {
    magnitude = std::ldexp(1024 + fraction, exponent - 25);
  }
  return (half.bits & 0x8000) != 0 ? -magnitude : magnitude;
}

double widen(Bfloat16 half) { return std::bit_cast<float>(uint32_t{half.bits} << 16); }

// Rounds to the nearest, ties to even.
Float16 narrow_to_float16(double value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return {static_cast<uint16_t>(sign | 0x7e00)};
  if (magnitude >= 65520) return {static_cast<uint16_t>(sign | 0x7c00)};
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  exponent = std::max(exponent - 1, -14);
  const auto scaled = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  // A fraction that rounded up to 2048 carries into the exponent by itself.
  const int bits = scaled < 1024 ? scaled : ((exponent + 15) << 10) + (scaled - 1024);
  return {static_cast<uint16_t>(sign | bits)};
}

Bfloat16 narrow_to_bfloat16(double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (std::isnan(value)) return {static_cast<uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_same_v<From, Float16> || std::is_same_v<From, Bfloat16>) {
    return convert<To>(widen(value));
  } else if constexpr (std::is_same_v<To, Float16>) {
    return narrow_to_float16(static_cast<double>(value));
  } else if constexpr (std::is_same_v<To, Bfloat16>) {
    return narrow_to_bfloat16(static_cast<double>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Out of range is undefined in C++; models do it (casting infinity), so saturate.
    constexpr auto kLow = static_cast<double>(std::numeric_limits<To>::min());
    constexpr auto kHigh = static_cast<double>(std::numeric_limits<To>::max());
    if (!(value > kLow)) return std::isnan(value) ? To{} : std::numeric_limits<To>::min();
    return value >= kHigh ? std::numeric_limits<To>::max() : static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

// Calls function(T{}) with the C++ type of elements of `type`.
template <typename Function>
auto with_type(DataType type, Function function) {
  switch (type) {
    case DataType::kBool: return function(bool{});
    case DataType::kUint8: return function(uint8_t{});
    case DataType::kUint16: return function(uint16_t{});
    case DataType::kUint32: return function(uint32_t{});
    case DataType::kUint64: return function(uint64_t{});
    case DataType::kInt8: return function(int8_t{});
    case DataType::kInt16: return function(int16_t{});
    case DataType::kInt32: return function(int32_t{});
    case DataType::kInt64: return function(int64_t{});
    case DataType::kFloat16: return function(Float16{});
    case DataType::kBfloat16: return function(Bfloat16{});
    case DataType::kFloat32: return function(float{});
    case DataType::kFloat64: return function(double{});
    case DataType::kBytes: break;
  }
  FOLIOT_CHECK(false);
}

template <typename To>
std::vector<To> unpack(const Constant& constant) {
  return with_type(constant.type, [&](auto tag) {
    using From = decltype(tag);
    std::vector<To> values(constant.bytes->size() / sizeof(From));
    for (size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_same_v<From, bool>) {
        // A byte other than 0 and 1 must not become a bool.
        values[i] = convert<To>((*constant.bytes)[i] != std::byte{0});
      } else {
        From value;
        std::memcpy(&value, constant.bytes->data() + i * sizeof(From), sizeof(From));
        values[i] = convert<To>(value);
      }
    }
    return values;
  });
}

template <typename From>
Constant pack(DataType type, Shape shape, std::span<const From> values) {
  std::vector<std::byte> bytes(values.size() * size_of(type));
  with_type(type, [&](auto tag) {
    using To = decltype(tag);
    for (size_t i = 0; i < values.size(); ++i) {
      const To value = convert<To>(values[i]);
      std::memcpy(bytes.data() + i * sizeof(To), &value, sizeof(To));
    }
  });
  return make_constant(type, std::move(shape), std::move(bytes));
}

}  // namespace

Constant make_constant(DataType type, Shape shape, std::vector<std::byte> bytes) {
  FOLIOT_CHECK(bytes.size() == byte_size(type, shape));
  return {type, std::move(shape), std::make_shared<const std::vector<std::byte>>(std::move(bytes))};
}

Constant make_constant(Shape shape, std::span<const int64_t> values) {
  return from_integers(DataType::kInt64, std::move(shape), values);
}

Constant make_constant(Shape shape, std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  return make_constant(DataType::kFloat32, std::move(shape), {bytes.begin(), bytes.end()});
}

Constant make_scalar(DataType type, double value) { return from_doubles(type, {}, std::span(&value, 1)); }

std::vector<double> to_doubles(const Constant& constant) { return unpack<double>(constant); }
std::vector<int64_t> to_integers(const Constant& constant) { return unpack<int64_t>(constant); }

Constant from_doubles(DataType type, Shape shape, std::span<const double> values) {
  return pack(type, std::move(shape), values);
}

Constant from_integers(DataType type, Shape shape, std::span<const int64_t> values) {
  return pack(type, std::move(shape), values);
}

bool is_floating(DataType type) {
  return type == DataType::kFloat16 || type == DataType::kBfloat16 || type == DataType::kFloat32 ||
         type == DataType::kFloat64;
}

bool is_integer(DataType type) { return !is_floating(type); }

std::span<const float> floats(const Constant& constant) {
  FOLIOT_CHECK(constant.type == DataType::kFloat32);
  return {reinterpret_cast<const float*>(constant.bytes->data()), constant.bytes->size() / sizeof(float)};
}

Constant ConstantPool::intern(Constant constant) {
  const auto interned = interned_.find(constant.bytes.get());
  if (interned != interned_.end() && !interned->second.expired()) return constant;
  auto& candidates = by_hash_[hash64(*constant.bytes)];
  std::erase_if(candidates, [](const auto& candidate) { return candidate.expired(); });
  for (const auto& candidate : candidates) {
    const auto known = candidate.lock();
    if (*known == *constant.bytes) {
      constant.bytes = known;
      return constant;
    }
  }
  candidates.push_back(constant.bytes);
  interned_[constant.bytes.get()] = constant.bytes;
  return constant;
}

Constant ConstantPool::derive(const Constant& from, std::string how, const std::function<Constant()>& make) {
  Derived& derived = derived_[{from.bytes.get(), std::move(how)}];
  if (derived.from.lock() == from.bytes) {
    if (auto bytes = derived.bytes.lock()) return {derived.type, derived.shape, std::move(bytes)};
  }
  Constant result = intern(make());
  derived = {from.bytes, result.bytes, result.type, result.shape};
  return result;
}

}  // namespace foliot
