#include "engine/device/cpu/block_product_rows.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "engine/device/cpu/instruction_set.h"

// What is included is compiled once for each instruction set: a function may be
// given one, but not what it inlines.
#define FOLIOT_TARGET __attribute__((target("avx512f,avx512dq,avx512bw,avx512vnni,fma")))
#define FOLIOT_LANES 16
#define FOLIOT_VECTORS 4
#define FOLIOT_ROWS 6
#define FOLIOT_ROUNDED_ROWS 6
#define FOLIOT_DOT 2
namespace foliot::block_product::avx512_vnni {
#include "engine/device/cpu/block_product_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_DOT

#define FOLIOT_TARGET __attribute__((target("avx512f,avx512dq,avx512bw,fma")))
#define FOLIOT_DOT 1
namespace foliot::block_product::avx512 {
#include "engine/device/cpu/block_product_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES
#undef FOLIOT_VECTORS
#undef FOLIOT_ROWS
#undef FOLIOT_ROUNDED_ROWS

#define FOLIOT_TARGET __attribute__((target("avx2,fma")))
#define FOLIOT_LANES 8
#define FOLIOT_VECTORS 2
#define FOLIOT_ROWS 6
#define FOLIOT_ROUNDED_ROWS 2
namespace foliot::block_product::avx2 {
#include "engine/device/cpu/block_product_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES
#undef FOLIOT_VECTORS
#undef FOLIOT_ROWS
#undef FOLIOT_DOT

#define FOLIOT_TARGET
#define FOLIOT_LANES 4
#define FOLIOT_VECTORS 2
#define FOLIOT_ROWS 4
#define FOLIOT_DOT 0
namespace foliot::block_product::sse2 {
#include "engine/device/cpu/block_product_rows.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_LANES
#undef FOLIOT_VECTORS
#undef FOLIOT_ROWS
#undef FOLIOT_ROUNDED_ROWS
#undef FOLIOT_DOT

namespace foliot {

BlockProductRows find_block_product_rows(dnnl::cpu_isa set) {
  const bool fma = __builtin_cpu_supports("fma") != 0;
  if (fma && includes(set, dnnl::cpu_isa::avx512_core_vnni)) return block_product::avx512_vnni::kFunctions;
  if (fma && includes(set, dnnl::cpu_isa::avx512_core)) return block_product::avx512::kFunctions;
  if (fma && includes(set, dnnl::cpu_isa::avx2)) return block_product::avx2::kFunctions;
  return block_product::sse2::kFunctions;
}

BlockProductRows find_block_product_rows() { return find_block_product_rows(instruction_set()); }

}  // namespace foliot
