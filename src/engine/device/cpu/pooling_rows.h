// The innermost loops of pooling over two dimensions of a dense tensor, for the widest vectors that the
// processor has and ONEDNN_MAX_CPU_ISA allows.
//
// Threading: thread-safe.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_POOLING_ROWS_H_
#define FOLIOT_ENGINE_DEVICE_CPU_POOLING_ROWS_H_

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

namespace foliot {

// The windows over one plane of the input.
struct PlaneWindows {
  // Elements of an input row with its padding on both sides, which all windows of a row lie within.
  static constexpr int64_t kPaddedWidthMax = 1024;

  struct Rows {
    int64_t first = 0;  // the first row of the input that the window sees
    int64_t count = 0;  // how many it sees, `dilation_down` apart
    float counted = 0;  // how many count in an average, or 1
  };

  int64_t in_width = 0;
  int64_t kernel_width = 0, stride = 0, dilation = 0, dilation_down = 0;
  int64_t pad_left = 0, padded_width = 0;
  std::vector<Rows> rows;      // of each row of the result
  std::vector<float> counted;  // of each column of the result: how many columns count in an average, or 1
};

struct PoolingRows {
  // Rows `begin` to `end` of the result, which starts at `to`. A window of padding only has the maximum
  // minus infinity, and the average 0. REQUIRES: windows.padded_width <= kPaddedWidthMax.
  using Pool = void (*)(const PlaneWindows& windows, const float* plane, int64_t begin, int64_t end, float* to);
  Pool maximum, average;
};

// Those of the best instruction set that `set` includes.
PoolingRows find_pooling_rows(dnnl::cpu_isa set);
// Those of this process's.
PoolingRows find_pooling_rows();

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_POOLING_ROWS_H_
