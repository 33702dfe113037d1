#include "engine/device/cpu/normalization_rows.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/device/cpu/instruction_set.h"

// What is included is compiled once for each instruction set: a function may be
// given one, but not what it inlines.
#define FOLIOT_TARGET __attribute__((target("avx512f,avx512dq,fma")))
#define FOLIOT_LANES 16
namespace foliot::normalization::avx512 {
#include "engine/device/cpu/normalization_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES

#define FOLIOT_TARGET __attribute__((target("avx2,fma")))
#define FOLIOT_LANES 8
namespace foliot::normalization::avx2 {
#include "engine/device/cpu/normalization_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES

#define FOLIOT_TARGET
#define FOLIOT_LANES 4
namespace foliot::normalization::sse2 {
#include "engine/device/cpu/normalization_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES

namespace foliot {

NormalizationRows find_normalization_rows(dnnl::cpu_isa set) {
  const bool fma = __builtin_cpu_supports("fma") != 0;
  if (fma && includes(set, dnnl::cpu_isa::avx512_core)) return normalization::avx512::kRows;
  if (fma && includes(set, dnnl::cpu_isa::avx2)) return normalization::avx2::kRows;
  return normalization::sse2::kRows;
}

NormalizationRows find_normalization_rows() { return find_normalization_rows(instruction_set()); }

}  // namespace foliot
