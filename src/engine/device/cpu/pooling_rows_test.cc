#include "engine/device/cpu/pooling_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "engine/device/cpu/instruction_set.h"
#include "foundation/base/random.h"

namespace foliot {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();
constexpr float kUnwritten = 77;

// Those of every instruction set that this processor has.
std::vector<PoolingRows> all_pooling_rows() {
  std::vector<PoolingRows> result;
  for (const auto set : {dnnl::cpu_isa::sse41, dnnl::cpu_isa::avx2, dnnl::cpu_isa::avx512_core})
    if (includes(instruction_set(), set)) result.push_back(find_pooling_rows(set));
  return result;
}

// A pooling of square windows with as much padding on all sides, which does not count in an average.
struct Pooling {
  int64_t height, width, kernel, stride, dilation, pad;

  int64_t results(int64_t size) const { return (size + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1; }

  // Calls body(position in the input) for each that a window sees.
  template <typename Body>
  void each(int64_t size, int64_t result, const Body& body) const {
    for (int64_t k = 0; k < kernel; ++k) {
      const int64_t at = result * stride - pad + k * dilation;
      if (at >= 0 && at < size) body(at);
    }
  }

  PlaneWindows windows() const {
    PlaneWindows windows{.in_width = width,
                         .kernel_width = kernel,
                         .stride = stride,
                         .dilation = dilation,
                         .dilation_down = dilation,
                         .pad_left = pad,
                         .padded_width = width + 2 * pad,
                         .rows = {},
                         .counted = {}};
    for (int64_t y = 0; y < results(height); ++y) {
      PlaneWindows::Rows rows;
      each(height, y, [&](int64_t at) {
        if (rows.count++ == 0) rows.first = at;
      });
      rows.counted = static_cast<float>(std::max<int64_t>(rows.count, 1));
      windows.rows.push_back(rows);
    }
    for (int64_t x = 0; x < results(width); ++x) {
      windows.counted.push_back(0);
      each(width, x, [&](int64_t) { ++windows.counted.back(); });
      windows.counted.back() = std::max(windows.counted.back(), 1.0F);
    }
    return windows;
  }

  float expected(const std::vector<float>& plane, int64_t y, int64_t x, bool maximum) const {
    float result = maximum ? kNothing : 0;
    float count = 0;
    each(height, y, [&](int64_t row) {
      each(width, x, [&](int64_t column) {
        const float value = plane[static_cast<size_t>(row * width + column)];
        result = maximum ? std::max(result, value) : result + value;
        ++count;
      });
    });
    return maximum || count == 0 ? result : result / count;
  }
};

void expect_equal(const Pooling& pooling) {
  Random random(static_cast<uint64_t>(pooling.width));
  std::vector<float> plane(static_cast<size_t>(pooling.height * pooling.width));
  for (float& x : plane) x = static_cast<float>(static_cast<int>(random.uniform() * 64) - 32);
  const PlaneWindows windows = pooling.windows();
  const int64_t rows = pooling.results(pooling.height), columns = pooling.results(pooling.width);
  for (const PoolingRows& pool : all_pooling_rows())
    for (const bool maximum : {true, false}) {
      std::vector<float> to(static_cast<size_t>(rows * columns) + 1, kUnwritten);
      const int64_t half = rows / 2;
      const PoolingRows::Pool run = maximum ? pool.maximum : pool.average;
      run(windows, plane.data(), half, rows, to.data() + half * columns);
      run(windows, plane.data(), 0, half, to.data());
      for (int64_t y = 0; y < rows; ++y)
        for (int64_t x = 0; x < columns; ++x)
          EXPECT_FLOAT_EQ(to[static_cast<size_t>(y * columns + x)], pooling.expected(plane, y, x, maximum))
              << pooling.width << "/" << pooling.stride << " " << y << " " << x << " " << maximum;
      EXPECT_EQ(to.back(), kUnwritten);
    }
}

TEST(PoolingRowsTest, WindowsOfManyWidths) {
  for (const int64_t stride : {1, 2, 3})
    for (const int64_t kernel : {2, 3, 5})
      for (const int64_t width : {5, 6, 7, 8, 9, 14, 15, 16, 17, 20, 33, 56, 112})
        expect_equal(
            {.height = 9, .width = width, .kernel = kernel, .stride = stride, .dilation = 1, .pad = kernel / 2});
}

TEST(PoolingRowsTest, DilatedWindows) {
  for (const int64_t stride : {1, 2})
    for (const int64_t dilation : {2, 3})
      for (const int64_t width : {9, 17, 40})
        expect_equal({.height = 12, .width = width, .kernel = 3, .stride = stride, .dilation = dilation, .pad = 0});
}

TEST(PoolingRowsTest, WindowsOfPaddingOnly) {
  expect_equal({.height = 3, .width = 4, .kernel = 2, .stride = 1, .dilation = 1, .pad = 3});
  expect_equal({.height = 3, .width = 9, .kernel = 2, .stride = 2, .dilation = 1, .pad = 4});
}

TEST(PoolingRowsTest, AWindowAsLargeAsThePlane) {
  expect_equal({.height = 7, .width = 7, .kernel = 7, .stride = 1, .dilation = 1, .pad = 0});
  expect_equal({.height = 1, .width = 1, .kernel = 1, .stride = 2, .dilation = 1, .pad = 0});
}

TEST(PoolingRowsTest, TheWidestRow) {
  expect_equal(
      {.height = 2, .width = PlaneWindows::kPaddedWidthMax - 2, .kernel = 3, .stride = 2, .dilation = 1, .pad = 1});
}

}  // namespace
}  // namespace foliot
