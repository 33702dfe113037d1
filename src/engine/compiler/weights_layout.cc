#include "engine/compiler/weights_layout.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "foundation/base/check.h"

namespace foliot {
namespace {

constexpr uint64_t kBlockBytes = 4096;  // what LOAD reads in

uint64_t aligned_bytes(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

std::vector<std::byte> lay_out_weights(LoweredProgram& program) {
  constexpr uint64_t kNowhere = std::numeric_limits<uint64_t>::max();
  std::vector<uint64_t> offsets(program.constants.size(), kNowhere);
  std::vector<uint32_t> order;
  uint64_t end = 0;
  for (Plan& plan : program.plans) {
    for (Tensor& tensor : plan.tensors) {
      if (tensor.place != Place::kWeights || tensor.alias_of != kNoTensor) continue;
      FOLIOT_CHECK(tensor.constant < offsets.size());
      FOLIOT_CHECK(tensor.bytes <= program.constants[tensor.constant].size());
      uint64_t& offset = offsets[tensor.constant];
      if (offset == kNowhere) {
        offset = end;
        order.push_back(tensor.constant);
        end = aligned_bytes(end + program.constants[tensor.constant].size(), kTensorAlignment);
      }
      tensor.offset = offset;
    }
  }
  std::vector<std::byte> weights(std::max(aligned_bytes(end, kBlockBytes), kBlockBytes));
  for (uint32_t index : order) {
    std::vector<std::byte>& constant = program.constants[index];
    if (!constant.empty()) std::memcpy(weights.data() + offsets[index], constant.data(), constant.size());
    // Given back at once: the largest models would not fit into memory twice.
    constant = {};
  }
  program.constants.clear();
  return weights;
}

}  // namespace foliot
