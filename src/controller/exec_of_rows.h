// exec_of_rows(): how long a device needs for the rows that wait for one model and bucket.
#ifndef FOLIOT_CONTROLLER_EXEC_OF_ROWS_H_
#define FOLIOT_CONTROLLER_EXEC_OF_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/time.h"

namespace foliot {

// The shortest of these: full batches of the largest size, and of ever smaller ones while rows are left;
// or at some size the rest as one batch that is not full. So a size that is expected to take longer than
// a larger one, as code that collects garbage now and then does, is not what many rows are judged by.
// `exec(i)`: of a batch of `sizes[i]`. REQUIRES: `sizes` are ascending.
template <typename Exec>
Duration exec_of_rows(std::span<const uint32_t> sizes, uint32_t rows, Exec exec) {
  Duration full;
  Duration least = Duration::max();
  for (size_t i = sizes.size(); i-- > 0 && rows > 0;) {
    const Duration one = exec(i);
    full += one * static_cast<int64_t>(rows / sizes[i]);
    rows %= sizes[i];
    if (rows > 0) least = std::min(least, full + one);
  }
  return rows > 0 ? least : std::min(least, full);
}

}  // namespace foliot

#endif  // FOLIOT_CONTROLLER_EXEC_OF_ROWS_H_
