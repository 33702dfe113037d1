#include "engine/device/vulkan/dispatch.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace foliot {
namespace {

constexpr uint64_t kWordMax = std::numeric_limits<uint32_t>::max();
// The least that a driver has to allow for each dimension is 65,535.
constexpr uint64_t kGroupsXMax = 32'768;
// Of the epilogue: the two functions and what combines.
constexpr std::array<size_t, 3> kEpilogueFunctions{6, 9, 11};

}  // namespace

std::string_view to_string(Shader shader) {
  constexpr std::array<std::string_view, kShaderCount> kNames{
      "vulkan:pointwise", "vulkan:product", "vulkan:convolution", "vulkan:pool",
      "vulkan:rows",      "vulkan:move",    "vulkan:resize"};
  return kNames.at(static_cast<size_t>(shader));
}

DispatchBuilder::DispatchBuilder(Shader shader) {
  dispatch_.shader = shader;
  for (const size_t id : kEpilogueFunctions) constant(id, kNoFunctionCode);
}

void DispatchBuilder::operand(size_t operand, const Tensor& tensor) {
  constant(1 + operand, static_cast<uint32_t>(tensor.place));
  words(operand, {tensor.offset});
  if (tensor.bytes > kWordMax || tensor.offset > kWordMax - tensor.bytes) fits_ = false;
}

void DispatchBuilder::read(size_t index, const Tensor& tensor) {
  operand(index, tensor);
  dispatch_.reads.push_back({tensor.place, tensor.offset, tensor.bytes});
}

void DispatchBuilder::write(const Tensor& tensor) {
  operand(kResultOperand, tensor);
  dispatch_.writes.push_back({tensor.place, tensor.offset, tensor.bytes});
}

void DispatchBuilder::real(size_t id, double value) {
  constant(id, std::bit_cast<uint32_t>(static_cast<float>(value)));
}

void DispatchBuilder::words(size_t first, std::initializer_list<uint64_t> values) {
  for (const uint64_t value : values) {
    if (value > kWordMax) fits_ = false;
    dispatch_.words.at(first++) = static_cast<uint32_t>(value);
  }
}

void DispatchBuilder::words(size_t first, const std::vector<int64_t>& values) {
  for (const int64_t value : values) {
    if (value > std::numeric_limits<int32_t>::max() || value < std::numeric_limits<int32_t>::min()) fits_ = false;
    dispatch_.words.at(first++) = static_cast<uint32_t>(value);
  }
}

Result<Dispatch> DispatchBuilder::over(uint64_t invocations) {
  return over_groups((invocations + kInvocationsPerGroup - 1) / kInvocationsPerGroup);
}

Result<Dispatch> DispatchBuilder::over_groups(uint64_t groups) {
  if (!fits_ || groups > kWordMax / kInvocationsPerGroup) {
    return Status::unimplemented("more than 2^32 bytes or invocations; choose smaller batch sizes");
  }
  dispatch_.groups_x = static_cast<uint32_t>(std::clamp<uint64_t>(groups, 1, kGroupsXMax));
  dispatch_.groups_y = static_cast<uint32_t>((groups + dispatch_.groups_x - 1) / dispatch_.groups_x);
  return std::move(dispatch_);
}

}  // namespace foliot
