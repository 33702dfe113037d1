#include "engine/device/cpu/vector_functions.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/device/cpu/activation_rows.h"
#include "engine/device/cpu/instruction_set.h"

namespace foliot {
namespace {

constexpr int64_t kLanes = 8;
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));

// What is inlined into a function, or called with vectors, must not need more than it.
#define FOLIOT_TARGET __attribute__((target("avx2,fma")))

// Their names follow the vector function ABI of x86-64: AVX2, no mask, eight lanes.
#define FOLIOT_LANES_OF(name) extern "C" FOLIOT_TARGET Lanes foliot_lanes_##name(Lanes) __asm__("_ZGVdN8v_" #name "f")
FOLIOT_LANES_OF(erf);
FOLIOT_LANES_OF(log);
FOLIOT_LANES_OF(sin);
FOLIOT_LANES_OF(cos);
FOLIOT_LANES_OF(tan);
FOLIOT_LANES_OF(asin);
FOLIOT_LANES_OF(acos);
FOLIOT_LANES_OF(atan);
FOLIOT_LANES_OF(sinh);
FOLIOT_LANES_OF(cosh);
FOLIOT_LANES_OF(asinh);
FOLIOT_LANES_OF(acosh);
FOLIOT_LANES_OF(atanh);
#undef FOLIOT_LANES_OF
extern "C" FOLIOT_TARGET Lanes foliot_lanes_pow(Lanes, Lanes) __asm__("_ZGVdN8vv_powf");

FOLIOT_TARGET Lanes lanes_floor(Lanes x) { return _mm256_floor_ps(x); }
FOLIOT_TARGET Lanes lanes_ceil(Lanes x) { return _mm256_ceil_ps(x); }

// The values that do not fill a vector by the same function as the others, so that they are
// not rounded in another way.
template <Lanes (*function)(Lanes)>
FOLIOT_TARGET void apply(const float* from, float* to, int64_t count) {
  Lanes lanes{};
  for (; count >= kLanes; count -= kLanes, from += kLanes, to += kLanes) {
    std::memcpy(&lanes, from, sizeof(lanes));
    lanes = function(lanes);
    std::memcpy(to, &lanes, sizeof(lanes));
  }
  if (count == 0) return;
  std::memcpy(&lanes, from, static_cast<size_t>(count) * sizeof(float));
  lanes = function(lanes);
  std::memcpy(to, &lanes, static_cast<size_t>(count) * sizeof(float));
}

FOLIOT_TARGET void apply_power(const float* from, float exponent, float* to, int64_t count) {
  const Lanes exponents = Lanes{} + exponent;
  Lanes lanes{};
  for (; count >= kLanes; count -= kLanes, from += kLanes, to += kLanes) {
    std::memcpy(&lanes, from, sizeof(lanes));
    lanes = foliot_lanes_pow(lanes, exponents);
    std::memcpy(to, &lanes, sizeof(lanes));
  }
  if (count == 0) return;
  std::memcpy(&lanes, from, static_cast<size_t>(count) * sizeof(float));
  lanes = foliot_lanes_pow(lanes, exponents);
  std::memcpy(to, &lanes, static_cast<size_t>(count) * sizeof(float));
}

// x - n * y is exact in one rounding: it is smaller than y, and a multiple of the last place of the smaller of the two.
// A quotient below 2^22 is rounded by less than a quarter, so that n may be one too far from zero, and is then noticed
// by the sign. False: beyond that, or a number that is not finite.
FOLIOT_TARGET bool take_remainders(const Lanes& dividends, const Lanes& divisors, Lanes& to) {
  const __m256 x = dividends, y = divisors, sign = _mm256_set1_ps(-0.F);
  const __m256 size = _mm256_andnot_ps(sign, y);
  const __m256 quotient = _mm256_round_ps(_mm256_div_ps(x, y), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  const __m256 small = _mm256_cmp_ps(_mm256_andnot_ps(sign, quotient), _mm256_set1_ps(0x1p22F), _CMP_LT_OQ);
  const __m256 finite = _mm256_cmp_ps(size, _mm256_set1_ps(std::numeric_limits<float>::infinity()), _CMP_LT_OQ);
  if (_mm256_movemask_ps(_mm256_and_ps(small, finite)) != 0xff) return false;
  const __m256 negative = _mm256_and_ps(x, sign);
  // As if the dividend were positive.
  const __m256 rest = _mm256_xor_ps(_mm256_fnmadd_ps(quotient, y, x), negative);
  const __m256 beyond = _mm256_cmp_ps(rest, _mm256_setzero_ps(), _CMP_LT_OQ);
  const __m256 right = _mm256_add_ps(rest, _mm256_and_ps(beyond, size));
  to = _mm256_or_ps(_mm256_andnot_ps(sign, right), negative);
  return true;
}

// `left` of the lanes count.
FOLIOT_TARGET void take_any_remainders(const Lanes& dividends, const Lanes& divisors, int64_t left, Lanes& to) {
  if (take_remainders(dividends, divisors, to)) return;
  for (int64_t lane = 0; lane < left; ++lane) to[lane] = std::fmod(dividends[lane], divisors[lane]);
}

FOLIOT_TARGET void apply_remainder(const float* dividends, const float* divisors, int64_t divisor_stride, float* to,
                                   int64_t count) {
  Lanes x{}, y = Lanes{} + *divisors, rest{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    std::memcpy(&x, dividends + i, sizeof(x));
    if (divisor_stride == 1) std::memcpy(&y, divisors + i, sizeof(y));
    take_any_remainders(x, y, kLanes, rest);
    std::memcpy(to + i, &rest, sizeof(rest));
  }
  if (i == count) return;
  const auto bytes = static_cast<size_t>(count - i) * sizeof(float);
  std::memcpy(&x, dividends + i, bytes);
  if (divisor_stride == 1) std::memcpy(&y, divisors + i, bytes);
  take_any_remainders(x, y, count - i, rest);
  std::memcpy(to + i, &rest, bytes);
}

bool has_lanes() { return includes(instruction_set(), dnnl::cpu_isa::avx2) && __builtin_cpu_supports("fma") != 0; }

}  // namespace

VectorParameter find_vector_power() { return has_lanes() ? apply_power : nullptr; }

VectorParameter find_vector_elu() { return has_lanes() ? find_activation_rows(instruction_set()).elu : nullptr; }

VectorRemainder find_vector_remainder() { return has_lanes() ? apply_remainder : nullptr; }

VectorFunction find_vector_function(Function function) {
  if (!has_lanes()) return nullptr;
  switch (function) {
    case Function::kFloor: return apply<lanes_floor>;
    case Function::kCeil: return apply<lanes_ceil>;
    case Function::kErf: return apply<foliot_lanes_erf>;
    case Function::kRelu: return find_activation_rows(instruction_set()).relu;
    case Function::kExp: return find_activation_rows(instruction_set()).exp;
    case Function::kLog: return apply<foliot_lanes_log>;
    case Function::kSoftplus: return find_activation_rows(instruction_set()).softplus;
    case Function::kSin: return apply<foliot_lanes_sin>;
    case Function::kCos: return apply<foliot_lanes_cos>;
    case Function::kTan: return apply<foliot_lanes_tan>;
    case Function::kAsin: return apply<foliot_lanes_asin>;
    case Function::kAcos: return apply<foliot_lanes_acos>;
    case Function::kAtan: return apply<foliot_lanes_atan>;
    case Function::kSinh: return apply<foliot_lanes_sinh>;
    case Function::kCosh: return apply<foliot_lanes_cosh>;
    case Function::kAsinh: return apply<foliot_lanes_asinh>;
    case Function::kAcosh: return apply<foliot_lanes_acosh>;
    case Function::kAtanh: return apply<foliot_lanes_atanh>;
    default: return nullptr;
  }
}

}  // namespace foliot
