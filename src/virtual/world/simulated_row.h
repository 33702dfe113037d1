// SimulatedRow: what a row of a simulated cluster's inputs holds, or of its outputs: tensors of 64-bit words. A
// model has one input and one output of three words, or, where pipelines visit stages for each element, three of
// each:
//
//   "x", "y"        three words; an output says what made it
//   "all", "parts"  kSimulatedElements elements of three words each, of which each can be an "x"
//   "n", "count"    a number of elements
//
// So the outputs of one model can be the inputs of another, as they are, by element, or gathered.
#ifndef FOLIOT_VIRTUAL_WORLD_SIMULATED_ROW_H_
#define FOLIOT_VIRTUAL_WORLD_SIMULATED_ROW_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "foundation/core/tensor.h"

namespace foliot {

inline constexpr uint32_t kSimulatedElements = 4;
inline constexpr uint32_t kSimulatedTensors = 3;
inline constexpr std::array<const char*, kSimulatedTensors> kSimulatedInputs{"x", "all", "n"};
inline constexpr std::array<const char*, kSimulatedTensors> kSimulatedOutputs{"y", "parts", "count"};
// The condition of a simulated stage holds if element 1 of its "y", as good as drawn, is below this.
inline constexpr double kSimulatedLimit = 9.2e18;

struct SimulatedRow {
  static constexpr uint32_t kWords = 3;  // of an element
  std::array<uint64_t, kWords + kSimulatedElements * kWords + 1> words{};

  // Of one tensor. REQUIRES: tensor < kSimulatedTensors.
  std::span<std::byte> bytes(uint32_t tensor);
  std::span<const std::byte> bytes(uint32_t tensor) const;
  // Of its first tensors: 1 or kSimulatedTensors.
  uint64_t hash(uint32_t tensors) const;

  // Of an output:
  uint64_t content() const { return words[0]; }  // content_hash() of the model
  uint64_t input() const { return words[1]; }    // hash() of the inputs
  uint64_t action() const { return words[2]; }
  bool condition() const { return static_cast<double>(words[1]) < kSimulatedLimit; }
  // nullopt: more than there may be.
  std::optional<uint32_t> count() const;

  bool operator==(const SimulatedRow&) const = default;
};

// The spec of one of these tensors, by this name.
TensorSpec simulated_tensor(const std::string& name, uint32_t tensor);
// What a model of this content makes of inputs with this hash. One of a hundred counts more elements than there may be.
SimulatedRow simulated_output(uint64_t content, uint64_t input, uint64_t action);

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_WORLD_SIMULATED_ROW_H_
