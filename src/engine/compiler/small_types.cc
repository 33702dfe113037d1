#include "engine/compiler/small_types.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace foliot {
namespace {

enum TypeNumber : int {
  kFloat8E4m3fn = 17,
  kFloat8E4m3fnuz = 18,
  kFloat8E5m2 = 19,
  kFloat8E5m2fnuz = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2m1 = 23,
  kFloat8E8m0 = 24,
  kUint2 = 25,
  kInt2 = 26,
};

constexpr std::array<SmallType, 10> kSmallTypes{{
    {kFloat8E4m3fn, 8, DataType::kFloat32},
    {kFloat8E4m3fnuz, 8, DataType::kFloat32},
    {kFloat8E5m2, 8, DataType::kFloat32},
    {kFloat8E5m2fnuz, 8, DataType::kFloat32},
    {kUint4, 4, DataType::kUint8},
    {kInt4, 4, DataType::kInt8},
    {kFloat4E2m1, 4, DataType::kFloat32},
    {kFloat8E8m0, 8, DataType::kFloat32},
    {kUint2, 2, DataType::kUint8},
    {kInt2, 2, DataType::kInt8},
}};

// A sign, an exponent and a mantissa, with numbers below the normal ones.
float decode(uint32_t code, int exponent_bits, int mantissa_bits, int bias) {
  const uint32_t mantissa = code & ((1U << mantissa_bits) - 1);
  const uint32_t exponent = (code >> mantissa_bits) & ((1U << exponent_bits) - 1);
  const bool negative = ((code >> (mantissa_bits + exponent_bits)) & 1) != 0;
  const uint32_t whole = exponent == 0 ? mantissa : mantissa + (1U << mantissa_bits);
  const int power = static_cast<int>(std::max<uint32_t>(exponent, 1)) - bias - mantissa_bits;
  const float magnitude = std::ldexp(static_cast<float>(whole), power);
  return negative ? -magnitude : magnitude;
}

float decode(int number, uint32_t code) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  constexpr uint32_t kSign = 0x80;
  switch (number) {
    case kFloat8E4m3fn: return (code | kSign) == 0xff ? kNan : decode(code, 4, 3, 7);
    case kFloat8E4m3fnuz: return code == kSign ? kNan : decode(code, 4, 3, 8);
    case kFloat8E5m2:
      if ((code | kSign) == 0xfc) return code == 0xfc ? -kInfinity : kInfinity;
      return (code | kSign) > 0xfc ? kNan : decode(code, 5, 2, 15);
    case kFloat8E5m2fnuz: return code == kSign ? kNan : decode(code, 5, 2, 16);
    case kFloat4E2m1: return decode(code, 2, 1, 1);
    default: return code == 0xff ? kNan : std::ldexp(1.0F, static_cast<int>(code) - 127);  // kFloat8E8m0
  }
}

}  // namespace

const SmallType* find_small_type(int number) {
  const auto* const found = std::ranges::find(kSmallTypes, number, &SmallType::number);
  return found == kSmallTypes.end() ? nullptr : &*found;
}

uint64_t packed_bytes(const SmallType& type, uint64_t elements) {
  const auto per_byte = static_cast<uint64_t>(8 / type.bits);
  return elements / per_byte + (elements % per_byte == 0 ? 0 : 1);
}

std::vector<std::byte> widen(const SmallType& type, std::span<const std::byte> packed, uint64_t elements) {
  const auto bits = static_cast<uint32_t>(type.bits);
  const uint32_t per_byte = 8 / bits, mask = (1U << bits) - 1, sign = 1U << (bits - 1);
  std::vector<std::byte> wide(elements * size_of(type.wide));
  for (uint64_t i = 0; i < elements; ++i) {
    const uint32_t code = (std::to_integer<uint32_t>(packed[i / per_byte]) >> (i % per_byte * bits)) & mask;
    if (type.wide == DataType::kFloat32) {
      const float value = decode(type.number, code);
      std::memcpy(wide.data() + i * sizeof(value), &value, sizeof(value));
    } else {
      const bool negative = type.wide == DataType::kInt8 && (code & sign) != 0;
      wide[i] = static_cast<std::byte>(negative ? code - (mask + 1) : code);
    }
  }
  return wide;
}

}  // namespace foliot
