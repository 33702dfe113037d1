// The innermost loops of Softmax and LayerNorm over the last dimension of a dense tensor, for the
// widest vectors that the processor has and ONEDNN_MAX_CPU_ISA allows.
//
// A row's result does not depend on which others it is taken with. `from` and `to` are the same or do
// not overlap. A row with a NaN becomes NaN as a whole, and so does one whose values have no
// difference that is a number (an infinity minus itself).
//
// Threading: thread-safe.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_NORMALIZATION_ROWS_H_
#define FOLIOT_ENGINE_DEVICE_CPU_NORMALIZATION_ROWS_H_

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>

namespace foliot {

struct NormalizationRows {
  // exp(x - largest) / sum, or the logarithm of it. REQUIRES: count >= 1.
  void (*softmax)(const float* from, float* to, int64_t count, bool log);

  struct Moments {
    float mean = 0, variance = 0;
  };
  // The variance is that of all values, not of a sample. REQUIRES: count >= 1.
  Moments (*moments)(const float* from, int64_t count);

  // (x - mean) * factor + shift
  void (*normalize)(const float* from, float* to, int64_t count, float mean, float factor, float shift);
};

// Those of the best instruction set that `set` includes.
NormalizationRows find_normalization_rows(dnnl::cpu_isa set);
// Those of this process's.
NormalizationRows find_normalization_rows();

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_NORMALIZATION_ROWS_H_
