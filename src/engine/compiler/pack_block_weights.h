// Packing weights of few bits, each block of which has a scale and a zero point, as OperatorKind::kBlockMatMul
// multiplies with them.
#ifndef FOLIOT_ENGINE_COMPILER_PACK_BLOCK_WEIGHTS_H_
#define FOLIOT_ENGINE_COMPILER_PACK_BLOCK_WEIGHTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/compiler/constant.h"
#include "engine/device/block_weights.h"

namespace foliot {

// Codes [column][depth], scales and zero points [column][block].
struct LooseBlocks {
  BlockWeights form;
  std::vector<uint8_t> codes;
  std::vector<float> scales;
  std::vector<uint8_t> zero_points;
};

// Inputs 1 to 3 of kBlockMatMul.
struct PackedBlocks {
  Constant codes, scales;
  std::optional<Constant> zero_points;  // nullopt: all are in the middle
};

// Nullopt for scales that are not finite: their products depend on the order of the factors.
// REQUIRES: form.is_possible(), and vectors of its extents.
std::optional<PackedBlocks> pack(const LooseBlocks& loose);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_PACK_BLOCK_WEIGHTS_H_
