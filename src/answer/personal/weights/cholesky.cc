#include "answer/personal/weights/cholesky.h"

#include <cmath>
#include <cstdint>
#include <cstring>

// What is included is compiled once for each instruction set: a function may be
// given one, but not what it inlines.
#define FOLIOT_TARGET __attribute__((target("avx2,fma")))
#define FOLIOT_BYTES 32
namespace foliot::cholesky_avx2 {
#include "answer/personal/weights/cholesky.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_BYTES

#define FOLIOT_TARGET
#define FOLIOT_BYTES 16
namespace foliot::cholesky_sse2 {
#include "answer/personal/weights/cholesky.inc"
}
#undef FOLIOT_TARGET
#undef FOLIOT_BYTES

namespace foliot {
namespace {

template <typename T>
constexpr Cholesky<T> kAvx2 = {cholesky_avx2::update<T>,      cholesky_avx2::add_products<T>,
                               cholesky_avx2::decompose<T>,   cholesky_avx2::solve_lower<T>,
                               cholesky_avx2::solve_upper<T>, cholesky_avx2::solve_lower_many<T>,
                               cholesky_avx2::multiply<T>,    cholesky_avx2::update_inverse<T>};
template <typename T>
constexpr Cholesky<T> kSse2 = {cholesky_sse2::update<T>,      cholesky_sse2::add_products<T>,
                               cholesky_sse2::decompose<T>,   cholesky_sse2::solve_lower<T>,
                               cholesky_sse2::solve_upper<T>, cholesky_sse2::solve_lower_many<T>,
                               cholesky_sse2::multiply<T>,    cholesky_sse2::update_inverse<T>};

}  // namespace

template <typename T>
const Cholesky<T>& cholesky() {
  const bool has_avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  return has_avx2 ? kAvx2<T> : kSse2<T>;
}

template const Cholesky<float>& cholesky();
template const Cholesky<double>& cholesky();

}  // namespace foliot
