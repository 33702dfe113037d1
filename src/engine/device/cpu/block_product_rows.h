// The inner loops of products with weights of 4 or 8 bits, each block of which has a scale and a zero point, for the
// widest vectors that the processor has and ONEDNN_MAX_CPU_ISA allows.
//
// Threading: the functions keep no state; shares of one product may run at the same time.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_BLOCK_PRODUCT_ROWS_H_
#define FOLIOT_ENGINE_DEVICE_CPU_BLOCK_PRODUCT_ROWS_H_

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>

#include "engine/device/block_weights.h"

namespace foliot {

// Panels that one share multiplies at once, whatever the size of a vector.
inline constexpr int64_t kPanelsPerShare = 4;
// Rows that are multiplied with weights as they are unpacked; for more, weights are unpacked once.
inline constexpr int64_t kUnpackedRows = 4;
// Of one share, for more rows than that: floats for unpacked weights.
inline constexpr int64_t kUnpackedDepth = 128;
inline constexpr int64_t kUnpackedFloats = kUnpackedDepth * kPanelsPerShare * BlockWeights::kPanelColumns;

// to[rows][columns] = x[rows][depth] times the weights, plus the bias.
struct BlockProduct {
  BlockWeights weights;
  int64_t rows = 0;
  const uint32_t* codes = nullptr;
  const float* scales = nullptr;
  const uint8_t* zero_points = nullptr;  // nullptr: the middle
  const float* bias = nullptr;           // nullptr: none
  const float* x = nullptr;
  float* to = nullptr;
  // The rows of x rounded to int8, where they are: [rows][weights.padded_depth()], and of each row and block the
  // scale and the sum of the codes.
  int8_t* rounded = nullptr;
  float* rounded_scales = nullptr;
  int32_t* rounded_sums = nullptr;
};

struct BlockProductRows {
  // The panels of share `share`, from float32. `unpacked`: kUnpackedFloats, unless rows <= kUnpackedRows.
  void (*multiply)(const BlockProduct& product, int64_t share, float* unpacked);
  // Rounds one row of x: each block to the multiples of its largest magnitude / 127, of two equally near ones to the
  // even one. A block with a value that is not finite gets the scale NaN; one whose 127 / magnitude is beyond
  // float32 (magnitudes below 3.8e-37) counts as zero.
  void (*round_row)(const BlockProduct& product, int64_t row);
  // As multiply(), from rounded rows.
  void (*multiply_rounded)(const BlockProduct& product, int64_t share);
};

BlockProductRows find_block_product_rows(dnnl::cpu_isa set);
BlockProductRows find_block_product_rows();

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_BLOCK_PRODUCT_ROWS_H_
