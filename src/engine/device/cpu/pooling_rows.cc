#include "engine/device/cpu/pooling_rows.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/device/cpu/instruction_set.h"

// What is included is compiled once for each instruction set: a function may be
// given one, but not what it inlines.
#define FOLIOT_TARGET __attribute__((target("avx512f,avx512dq,fma")))
#define FOLIOT_LANES 16
namespace foliot::pooling::avx512 {
#include "engine/device/cpu/pooling_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES

#define FOLIOT_TARGET __attribute__((target("avx2,fma")))
#define FOLIOT_LANES 8
namespace foliot::pooling::avx2 {
#include "engine/device/cpu/pooling_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES

#define FOLIOT_TARGET
#define FOLIOT_LANES 4
namespace foliot::pooling::sse2 {
#include "engine/device/cpu/pooling_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES

namespace foliot {

PoolingRows find_pooling_rows(dnnl::cpu_isa set) {
  const bool fma = __builtin_cpu_supports("fma") != 0;
  if (fma && includes(set, dnnl::cpu_isa::avx512_core)) return pooling::avx512::kRows;
  if (fma && includes(set, dnnl::cpu_isa::avx2)) return pooling::avx2::kRows;
  return pooling::sse2::kRows;
}

PoolingRows find_pooling_rows() { return find_pooling_rows(instruction_set()); }

}  // namespace foliot
