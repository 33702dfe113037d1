#include "engine/device/cpu/product_rows.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "engine/device/cpu/instruction_set.h"

namespace foliot {
namespace {

// Integers wrap, which only those without a sign do by definition.
template <typename T>
using Unsigned = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

}  // namespace
}  // namespace foliot

// What is included is compiled once for each instruction set: a function may be
// given one, but not what it inlines.
#define FOLIOT_TARGET __attribute__((target("avx512f,avx512dq,fma")))
#define FOLIOT_BYTES 64
namespace foliot::product::avx512 {
#include "engine/device/cpu/product_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_BYTES

#define FOLIOT_TARGET __attribute__((target("avx2,fma")))
#define FOLIOT_BYTES 32
namespace foliot::product::avx2 {
#include "engine/device/cpu/product_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_BYTES

#define FOLIOT_TARGET
#define FOLIOT_BYTES 16
namespace foliot::product::sse2 {
#include "engine/device/cpu/product_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_BYTES

namespace foliot {

template <typename T>
MultiplyRows<T> find_multiply_rows() {
  const bool fma = __builtin_cpu_supports("fma") != 0;
  if (fma && includes(instruction_set(), dnnl::cpu_isa::avx512_core)) return product::avx512::multiply_rows<T>;
  if (fma && includes(instruction_set(), dnnl::cpu_isa::avx2)) return product::avx2::multiply_rows<T>;
  return product::sse2::multiply_rows<T>;
}

template MultiplyRows<int32_t> find_multiply_rows();
template MultiplyRows<int64_t> find_multiply_rows();
template MultiplyRows<double> find_multiply_rows();

}  // namespace foliot
