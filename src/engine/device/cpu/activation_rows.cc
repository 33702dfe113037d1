#include "engine/device/cpu/exponential_rows.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/device/cpu/instruction_set.h"

// What is included is compiled once for each instruction set: a function may be
// given one, but not what it inlines.
#define FOLIOT_TARGET __attribute__((target("avx512f,avx512dq,fma")))
#define FOLIOT_LANES 16
namespace foliot::exponential::avx512 {
#include "engine/device/cpu/exponential_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES

#define FOLIOT_TARGET __attribute__((target("avx2,fma")))
#define FOLIOT_LANES 8
namespace foliot::exponential::avx2 {
#include "engine/device/cpu/exponential_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES

namespace foliot {

ExponentialRows find_exponential_rows(dnnl::cpu_isa set) {
  return includes(set, dnnl::cpu_isa::avx512_core) ? exponential::avx512::kRows : exponential::avx2::kRows;
}

}  // namespace foliot
