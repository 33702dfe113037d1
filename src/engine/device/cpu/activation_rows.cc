#include "engine/device/cpu/activation_rows.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/device/cpu/instruction_set.h"

// What is included is compiled once for each instruction set: a function may be
// given one, but not what it inlines.
#define FOLIOT_TARGET __attribute__((target("avx512f,avx512dq,fma")))
#define FOLIOT_LANES 16
namespace foliot::activation_of::avx512 {
#include "engine/device/cpu/activation_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES

#define FOLIOT_TARGET __attribute__((target("avx2,fma")))
#define FOLIOT_LANES 8
namespace foliot::activation_of::avx2 {
#include "engine/device/cpu/activation_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES

namespace foliot {

ActivationRows find_activation_rows(dnnl::cpu_isa set) {
  return includes(set, dnnl::cpu_isa::avx512_core) ? activation_of::avx512::kRows : activation_of::avx2::kRows;
}

}  // namespace foliot
