#include "engine/device/cpu/arg_reduce_rows.h"

#include <immintrin.h>

#include <cstring>
#include <limits>

#include "engine/device/cpu/instruction_set.h"

// What is included is compiled once for each instruction set: a function may be
// given one, but not what it inlines.
#define FOLIOT_TARGET __attribute__((target("avx512f,avx512dq,fma")))
#define FOLIOT_LANES 16
namespace foliot::arg_reduction::avx512 {
#include "engine/device/cpu/arg_reduce_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES

#define FOLIOT_TARGET __attribute__((target("avx2,fma")))
#define FOLIOT_LANES 8
namespace foliot::arg_reduction::avx2 {
#include "engine/device/cpu/arg_reduce_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES

#define FOLIOT_TARGET
#define FOLIOT_LANES 4
namespace foliot::arg_reduction::sse2 {
#include "engine/device/cpu/arg_reduce_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES

namespace foliot {

ArgReduceRows find_arg_reduce_rows(bool largest, bool last, dnnl::cpu_isa set) {
  const bool fma = __builtin_cpu_supports("fma") != 0;
  if (fma && includes(set, dnnl::cpu_isa::avx512_core)) return arg_reduction::avx512::kRows[largest][last];
  if (fma && includes(set, dnnl::cpu_isa::avx2)) return arg_reduction::avx2::kRows[largest][last];
  return arg_reduction::sse2::kRows[largest][last];
}

ArgReduceRows find_arg_reduce_rows(bool largest, bool last) {
  return find_arg_reduce_rows(largest, last, instruction_set());
}

}  // namespace foliot
