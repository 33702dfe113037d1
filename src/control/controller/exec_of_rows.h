// exec_of_rows(): how long a device needs for the rows that wait for one model and bucket.
#ifndef FOLIOT_CONTROL_CONTROLLER_EXEC_OF_ROWS_H_
#define FOLIOT_CONTROL_CONTROLLER_EXEC_OF_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <span>

#include "foundation/base/bounded_array.h"
#include "foundation/base/time.h"
#include "foundation/core/action.h"

namespace foliot {

// Indices of the sizes whose full batches serve rows as fast as those of any smaller size, ascending. A full batch of
// another size takes longer than its rows do in smaller ones, of which the first are over sooner besides.
using DenseSizes = BoundedArray<uint16_t, kBatchSizeMax>;

// `exec(i)`: of a batch of `sizes[i]`. REQUIRES: `sizes` are ascending.
// `rows_max`: those beyond the first that holds so many are left out.
template <typename Exec>
DenseSizes dense_sizes(std::span<const uint32_t> sizes, Exec exec, size_t rows_max = kBatchSizeMax) {
  DenseSizes dense;
  int64_t rows = 0;  // of the densest so far
  Duration least;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Duration one = exec(i);
    if (i > 0 && one * rows > least * int64_t{sizes[i]}) continue;
    dense.add(static_cast<uint16_t>(i));
    rows = sizes[i];
    least = one;
    if (rows >= static_cast<int64_t>(rows_max)) break;
  }
  return dense;
}

// The shortest of these, in dense sizes: full batches of the largest, and of ever smaller ones while rows are left;
// or at some size the rest as one batch that is not full. So a size that is expected to take longer than
// a larger one, as code that collects garbage now and then does, is not what many rows are judged by.
// `exec(i)`: of a batch of `sizes[i]`. REQUIRES: `sizes` are ascending.
template <typename Exec>
Duration exec_of_rows(std::span<const uint32_t> sizes, uint32_t rows, Exec exec) {
  Duration full;
  Duration least = Duration::max();
  const DenseSizes dense = dense_sizes(sizes, exec);
  for (uint32_t k = dense.size(); k-- > 0 && rows > 0;) {
    const uint16_t i = dense[k];
    const Duration one = exec(i);
    full += one * static_cast<int64_t>(rows / sizes[i]);
    rows %= sizes[i];
    if (rows > 0) least = std::min(least, full + one);
  }
  return rows > 0 ? least : std::min(least, full);
}

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_EXEC_OF_ROWS_H_
