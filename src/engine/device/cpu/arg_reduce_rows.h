// The innermost loops of ArgMax and ArgMin over float32, for the widest vectors that the processor has
// and ONEDNN_MAX_CPU_ISA allows.
//
// Of equal elements the first counts, or the last. A NaN is never the result, unless it is the first
// element: nothing is larger or smaller than that.
//
// Threading: thread-safe.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_ARG_REDUCE_ROWS_H_
#define FOLIOT_ENGINE_DEVICE_CPU_ARG_REDUCE_ROWS_H_

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>

namespace foliot {

struct ArgReduceRows {
  // The position of the extreme of a row. REQUIRES: 1 <= count <= INT32_MAX.
  int64_t (*row)(const float* from, int64_t count);

  // The positions of the extremes of `count` columns of `rows` elements; element i of column j stands
  // at from[i * stride + j]. REQUIRES: 1 <= rows <= INT32_MAX.
  void (*columns)(const float* from, int64_t rows, int64_t stride, int64_t count, int64_t* to);
};

// Those of the best instruction set that `set` includes.
ArgReduceRows find_arg_reduce_rows(bool largest, bool last, dnnl::cpu_isa set);
// Those of this process's.
ArgReduceRows find_arg_reduce_rows(bool largest, bool last);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_ARG_REDUCE_ROWS_H_
