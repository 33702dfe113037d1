#include "engine/device/conformance/bump_planner.h"

#include <cstring>

#include "foundation/base/check.h"

namespace foliot {
namespace {

uint64_t take(uint64_t& end, uint64_t bytes) {
  const uint64_t offset = end;
  end += (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  return offset;
}

void assign(Plan& plan, const std::vector<uint64_t>& constant_offsets) {
  for (Tensor& tensor : plan.tensors) {
    if (tensor.alias_of != kNoTensor) continue;
    switch (tensor.place) {
      case Place::kWeights: tensor.offset = constant_offsets.at(tensor.constant); break;
      case Place::kWorkspace: tensor.offset = take(plan.workspace_bytes, tensor.bytes); break;
      case Place::kInput: tensor.offset = take(plan.input_bytes, tensor.bytes); break;
      case Place::kOutput: tensor.offset = take(plan.output_bytes, tensor.bytes); break;
    }
  }
  for (Tensor& tensor : plan.tensors) {
    if (tensor.alias_of == kNoTensor) continue;
    const Tensor& owner = plan.tensors.at(tensor.alias_of);
    FOLIOT_CHECK(owner.alias_of == kNoTensor && owner.place == tensor.place);
    FOLIOT_CHECK(tensor.alias_offset + tensor.bytes <= owner.bytes);
    tensor.offset = owner.offset + tensor.alias_offset;
  }
}

class MemoryWeights : public WeightsSource {
 public:
  explicit MemoryWeights(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  uint64_t bytes() const override { return bytes_.size(); }
  Status read(uint64_t offset, std::span<std::byte> to) override {
    FOLIOT_CHECK(offset <= bytes_.size() && to.size() <= bytes_.size() - offset);
    std::memcpy(to.data(), bytes_.data() + offset, to.size());
    return Status();
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

std::vector<std::byte> assign_offsets(LoweredProgram& program) {
  std::vector<uint64_t> offsets;
  uint64_t end = 0;
  for (const std::vector<std::byte>& constant : program.constants) offsets.push_back(take(end, constant.size()));
  std::vector<std::byte> weights(end);
  for (size_t i = 0; i < offsets.size(); ++i)
    if (!program.constants[i].empty())
      std::memcpy(weights.data() + offsets[i], program.constants[i].data(), program.constants[i].size());
  for (Plan& plan : program.plans) assign(plan, offsets);
  return weights;
}

std::shared_ptr<WeightsSource> memory_weights(std::vector<std::byte> bytes) {
  return std::make_shared<MemoryWeights>(std::move(bytes));
}

}  // namespace foliot
