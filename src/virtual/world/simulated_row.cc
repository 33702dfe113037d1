#include "virtual/world/simulated_row.h"

#include "foundation/base/check.h"
#include "foundation/base/hash.h"

namespace foliot {
namespace {

constexpr std::array<size_t, kSimulatedTensors + 1> kBegins{0, SimulatedRow::kWords,
                                                            SimulatedRow::kWords*(1 + kSimulatedElements),
                                                            SimulatedRow::kWords*(1 + kSimulatedElements) + 1};

// What a hundred rows count. The last is above kSimulatedElements.
constexpr std::array<uint32_t, 6> kCounts{20, 30, 20, 14, 15, 1};

uint64_t mix(uint64_t input, uint64_t number) {
  const std::array<uint64_t, 2> words{input, number};
  return hash64(std::as_bytes(std::span(words)));
}

uint64_t draw_count(uint64_t input) {
  uint64_t left = mix(input, kSimulatedElements) % 100;
  uint64_t count = 0;
  while (left >= kCounts[count]) left -= kCounts[count++];
  return count;
}

}  // namespace

std::span<std::byte> SimulatedRow::bytes(uint32_t tensor) {
  return std::as_writable_bytes(std::span(words).subspan(kBegins.at(tensor), kBegins.at(tensor + 1) - kBegins[tensor]));
}

std::span<const std::byte> SimulatedRow::bytes(uint32_t tensor) const {
  return std::as_bytes(std::span(words).subspan(kBegins.at(tensor), kBegins.at(tensor + 1) - kBegins[tensor]));
}

uint64_t SimulatedRow::hash(uint32_t tensors) const {
  return hash64(std::as_bytes(std::span(words).first(kBegins.at(tensors))));
}

std::optional<uint32_t> SimulatedRow::count() const {
  const uint64_t count = words.back();
  return count <= kSimulatedElements ? std::optional(static_cast<uint32_t>(count)) : std::nullopt;
}

TensorSpec simulated_tensor(const std::string& name, uint32_t tensor) {
  switch (tensor) {
    case 0: return {name, DataType::kUint64, {SimulatedRow::kWords}, {""}};
    case 1: return {name, DataType::kUint64, {kSimulatedElements, SimulatedRow::kWords}, {"", ""}};
    default: return {name, DataType::kUint64, {1}, {""}};
  }
}

SimulatedRow simulated_output(uint64_t content, uint64_t input, uint64_t action) {
  SimulatedRow row{{content, input, action}};
  for (uint32_t element = 0; element < kSimulatedElements; ++element) {
    const size_t begin = SimulatedRow::kWords * (1 + element);
    row.words[begin] = content;
    row.words[begin + 1] = mix(input, element);
    row.words[begin + 2] = action;
  }
  row.words.back() = draw_count(input);
  return row;
}

}  // namespace foliot
