// The innermost loops of attention, for the widest vectors that the processor has and
// ONEDNN_MAX_CPU_ISA allows: some queries meet one block of keys and values, which fits
// into the cache, as does what lies between the two products.
//
// After Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018), and Dao et
// al., "FlashAttention" (2022): for each query the largest score so far, the sum of the powers and
// their product with the values are kept, and scaled down when a later block has a larger score.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_ATTENTION_ROWS_H_
#define FOLIOT_ENGINE_DEVICE_CPU_ATTENTION_ROWS_H_

#include <cstdint>

namespace foliot {

// Matrices on the right side of a product lie in panels: [column / kPanel][row][kPanel], the
// last one filled with zeros.
inline constexpr int64_t kPanel = 64;
// Queries and keys that meet at a time.
inline constexpr int64_t kQueryBlock = 24;
inline constexpr int64_t kKeyBlock = 256;

constexpr int64_t panelled(int64_t columns) { return (columns + kPanel - 1) / kPanel * kPanel; }

// Strides are in floats, from row to row.
struct AttentionRows {
  int64_t queries = 0;  // at most kQueryBlock
  int64_t keys = 0;     // at most kKeyBlock
  int64_t depth = 0;
  int64_t columns = 0;  // of values
  float alpha = 1;
  bool first = false;            // no keys came before: what was kept is not read
  const float* query = nullptr;  // [queries][depth]
  const float* key = nullptr;    // panels of [depth][keys]
  const float* value = nullptr;  // panels of [keys][columns]
  const float* mask = nullptr;   // [queries][keys], added to the scores; or nullptr
  int64_t mask_stride = 0;
  float* scores = nullptr;    // [kQueryBlock][kKeyBlock], scratch
  float* largest = nullptr;   // [queries], kept
  float* sums = nullptr;      // [queries], kept
  float* products = nullptr;  // [queries][panelled(columns)], kept
};

// What a query's result is does not depend on which others it is taken with.
using TakeAttentionRows = void (*)(const AttentionRows& rows);

TakeAttentionRows find_attention_rows();

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_ATTENTION_ROWS_H_
