#include "device/cpu/vector_functions.h"

#include <immintrin.h>

#include <cstring>

#include "device/cpu/instruction_set.h"

namespace foliot {
namespace {

constexpr int64_t kLanes = 8;
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));

// What is inlined into a function, or called with vectors, must not need more than it.
#define FOLIOT_TARGET __attribute__((target("avx2,fma")))

// Their names follow the vector function ABI of x86-64: AVX2, no mask, eight lanes.
#define FOLIOT_LANES_OF(name) extern "C" FOLIOT_TARGET Lanes foliot_lanes_##name(Lanes) __asm__("_ZGVdN8v_" #name "f")
FOLIOT_LANES_OF(erf);
FOLIOT_LANES_OF(exp);
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

bool has_lanes() { return includes(instruction_set(), dnnl::cpu_isa::avx2) && __builtin_cpu_supports("fma") != 0; }

}  // namespace

VectorPower find_vector_power() { return has_lanes() ? apply_power : nullptr; }

VectorFunction find_vector_function(Function function) {
  if (!has_lanes()) return nullptr;
  switch (function) {
    case Function::kFloor: return apply<lanes_floor>;
    case Function::kCeil: return apply<lanes_ceil>;
    case Function::kErf: return apply<foliot_lanes_erf>;
    case Function::kExp: return apply<foliot_lanes_exp>;
    case Function::kLog: return apply<foliot_lanes_log>;
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
