// The innermost loop of matrix products of types that oneDNN does not multiply, for the widest
// vectors that the processor has and ONEDNN_MAX_CPU_ISA allows.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_PRODUCT_ROWS_H_
#define FOLIOT_ENGINE_DEVICE_CPU_PRODUCT_ROWS_H_

#include <cstdint>

namespace foliot {

// Rows that are multiplied with the same part of the right side before the next.
inline constexpr int64_t kProductRows = 16;

// to[rows][columns] = a[rows][depth] x b[depth][columns]. Strides are in elements; b's columns and
// the result lie one after the other. Integers wrap.
template <typename T>
struct ProductRows {
  int64_t rows = 0;  // at most kProductRows
  int64_t columns = 0;
  int64_t depth = 0;
  const T* a = nullptr;
  int64_t a_row = 0, a_step = 0;
  const T* b = nullptr;
  int64_t b_step = 0;
  T* to = nullptr;
};

template <typename T>
using MultiplyRows = void (*)(const ProductRows<T>& product);

// For int32_t, int64_t and double.
template <typename T>
MultiplyRows<T> find_multiply_rows();

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_PRODUCT_ROWS_H_
