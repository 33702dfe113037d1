#include "device/cpu/vector_functions.h"

#include <cstring>

#include "device/cpu/instruction_set.h"

namespace foliot {
namespace {

constexpr int64_t kLanes = 8;
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));

// Their names follow the vector function ABI of x86-64: AVX2, no mask, eight lanes.
#define FOLIOT_LANES_OF(name) extern "C" Lanes foliot_lanes_##name(Lanes) __asm__("_ZGVdN8v_" #name "f")
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

template <Lanes (*function)(Lanes)>
__attribute__((target("avx2,fma"))) void apply(const float* from, float* to, int64_t count) {
  for (; count >= kLanes; count -= kLanes, from += kLanes, to += kLanes) {
    Lanes lanes;
    std::memcpy(&lanes, from, sizeof(lanes));
    lanes = function(lanes);
    std::memcpy(to, &lanes, sizeof(lanes));
  }
  // The rest by the same function, so that it is not rounded in another way.
  if (count == 0) return;
  Lanes lanes{};
  std::memcpy(&lanes, from, static_cast<size_t>(count) * sizeof(float));
  lanes = function(lanes);
  std::memcpy(to, &lanes, static_cast<size_t>(count) * sizeof(float));
}

}  // namespace

VectorFunction find_vector_function(Function function) {
  if (!includes(instruction_set(), dnnl::cpu_isa::avx2) || __builtin_cpu_supports("fma") == 0) return nullptr;
  switch (function) {
    case Function::kErf: return apply<foliot_lanes_erf>;
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
