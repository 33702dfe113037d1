#include "engine/device/cpu/attention_rows.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/device/cpu/instruction_set.h"

// What is included is compiled once for each instruction set: a function may be
// given one, but not what it inlines.
#define FOLIOT_TARGET __attribute__((target("avx512f,avx512dq,fma")))
#define FOLIOT_LANES 16
#define FOLIOT_ROWS 6
#define FOLIOT_VECTORS 4
namespace foliot::attention::avx512 {
#include "engine/device/cpu/attention_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES
#undef FOLIOT_ROWS
#undef FOLIOT_VECTORS

#define FOLIOT_TARGET __attribute__((target("avx2,fma")))
#define FOLIOT_LANES 8
#define FOLIOT_ROWS 6
#define FOLIOT_VECTORS 2
namespace foliot::attention::avx2 {
#include "engine/device/cpu/attention_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES
#undef FOLIOT_ROWS
#undef FOLIOT_VECTORS

#define FOLIOT_TARGET
#define FOLIOT_LANES 4
#define FOLIOT_ROWS 4
#define FOLIOT_VECTORS 2
namespace foliot::attention::sse2 {
#include "engine/device/cpu/attention_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES
#undef FOLIOT_ROWS
#undef FOLIOT_VECTORS

namespace foliot {

TakeAttentionRows find_attention_rows() {
  const bool fma = __builtin_cpu_supports("fma") != 0;
  if (fma && includes(instruction_set(), dnnl::cpu_isa::avx512_core)) return attention::avx512::take_attention_rows;
  if (fma && includes(instruction_set(), dnnl::cpu_isa::avx2)) return attention::avx2::take_attention_rows;
  return attention::sse2::take_attention_rows;
}

}  // namespace foliot
