// Functions of vectors of float32 values: most are those of the C library's vector math
// (libmvec), which are within 4 units in the last place. A value's result does not depend on
// where it stands.
//
// Threading: thread-safe.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_VECTOR_FUNCTIONS_H_
#define FOLIOT_ENGINE_DEVICE_CPU_VECTOR_FUNCTIONS_H_

#include <cstdint>

#include "engine/device/function.h"

namespace foliot {

// `from` and `to` are the same or do not overlap.
using VectorFunction = void (*)(const float* from, float* to, int64_t count);

// Nullptr: the library has no such function, or the processor has no AVX2.
VectorFunction find_vector_function(Function function);

// With a number for all values: an exponent, or alpha of Elu.
using VectorParameter = void (*)(const float* from, float parameter, float* to, int64_t count);

// Nullptr: the processor has no AVX2.
VectorParameter find_vector_power();

// Zero keeps its sign. Nullptr: the processor has no AVX2.
VectorParameter find_vector_elu();

// The remainders of divisions with the sign of the dividend, exactly as std::fmod() has them. `divisor_stride` is 1, or
// 0: one divisor for all.
using VectorRemainder = void (*)(const float* dividends, const float* divisors, int64_t divisor_stride, float* to,
                                 int64_t count);

// Nullptr: the processor has no AVX2.
VectorRemainder find_vector_remainder();

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_VECTOR_FUNCTIONS_H_
