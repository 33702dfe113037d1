#include "engine/device/cpu/recurrent_steps.h"

#include <algorithm>
#include <cstring>

#include "engine/device/cpu/instruction_set.h"

// What is included is compiled once for each instruction set: a function may be
// given one, but not what it inlines.
#define FOLIOT_TARGET __attribute__((target("avx512f,avx512dq,fma")))
#define FOLIOT_LANES 16
#define FOLIOT_ROWS 4
namespace foliot::avx512 {
#include "engine/device/cpu/recurrent_steps.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES
#undef FOLIOT_ROWS

#define FOLIOT_TARGET __attribute__((target("avx2,fma")))
#define FOLIOT_LANES 8
#define FOLIOT_ROWS 2
namespace foliot::avx2 {
#include "engine/device/cpu/recurrent_steps.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES
#undef FOLIOT_ROWS

#define FOLIOT_TARGET
#define FOLIOT_LANES 4
#define FOLIOT_ROWS 2
namespace foliot::sse2 {
#include "engine/device/cpu/recurrent_steps.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES
#undef FOLIOT_ROWS

namespace foliot {

TakeRecurrentStep find_recurrent_step(RecurrentCell cell) {
  const bool fma = __builtin_cpu_supports("fma") != 0;
  if (fma && includes(instruction_set(), dnnl::cpu_isa::avx512_core)) return avx512::find_step(cell);
  if (fma && includes(instruction_set(), dnnl::cpu_isa::avx2)) return avx2::find_step(cell);
  return sse2::find_step(cell);
}

}  // namespace foliot
