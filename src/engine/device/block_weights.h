// BlockWeights: the form of weights of 4 or 8 bits that OperatorKind::kBlockMatMul multiplies with, which the
// compiler writes and devices read.
//
//   weight = (code - zero point) * scale
//
// Blocks of `block` weights along the depth of one column share a scale and a zero point. Columns lie in panels of
// kPanelColumns. A word of 32 bits has the codes of one column for 8 (4 bits) or 4 (8 bits) consecutive depths:
// the code of depth i lies from bit shift_of(i) on, so that one mask gives four consecutive ones as bytes. Words:
// [panel][word][column in the panel]. Scales and zero points: [panel][block][column in the panel]. What fills up the
// last panel, and the last word of a column, has code 0; the columns that fill up the last panel have scale 0.
//
// Threading: a value.
#ifndef FOLIOT_ENGINE_DEVICE_BLOCK_WEIGHTS_H_
#define FOLIOT_ENGINE_DEVICE_BLOCK_WEIGHTS_H_

#include <cstdint>

#include "foundation/core/tensor.h"

namespace foliot {

struct BlockWeights {
  static constexpr int64_t kPanelColumns = 16;
  // So that sums of products of codes stay within int32.
  static constexpr int64_t kBlockMax = 1 << 14;

  int64_t depth = 0, columns = 0;
  int64_t block = 0;
  int64_t bits = 4;

  // Whether weights of this form exist: 4 or 8 bits, and a block of whole words.
  bool is_possible() const {
    return (bits == 4 || bits == 8) && depth >= 1 && columns >= 1 && block >= word_depth() && block <= kBlockMax &&
           block % word_depth() == 0;
  }
  int64_t word_depth() const { return 32 / bits; }
  int64_t middle() const { return int64_t{1} << (bits - 1); }
  int64_t blocks() const { return (depth + block - 1) / block; }
  int64_t words() const { return (depth + word_depth() - 1) / word_depth(); }
  int64_t panels() const { return (columns + kPanelColumns - 1) / kPanelColumns; }
  int64_t padded_depth() const { return words() * word_depth(); }
  int64_t shift_of(int64_t i) const { return bits == 8 ? 8 * i : 8 * (i % 4) + 4 * (i / 4); }

  // Shapes of the tensors: uint8, float32, uint8.
  Shape codes_shape() const { return {panels(), words(), kPanelColumns, 4}; }
  Shape scales_shape() const { return {panels(), blocks(), kPanelColumns}; }
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_BLOCK_WEIGHTS_H_
