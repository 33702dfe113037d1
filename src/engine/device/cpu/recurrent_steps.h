// The innermost loop of recurrent networks, for the widest vectors that the
// processor has and ONEDNN_MAX_CPU_ISA allows.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_RECURRENT_STEPS_H_
#define FOLIOT_ENGINE_DEVICE_CPU_RECURRENT_STEPS_H_

#include <cstdint>

namespace foliot {

enum class RecurrentCell { kLstm, kGru, kRnn };

constexpr int64_t gates_of(RecurrentCell cell) {
  return cell == RecurrentCell::kLstm ? 4 : cell == RecurrentCell::kGru ? 3 : 1;
}

// Weights lie as [unit / kUnitBlock][from unit][gate][kUnitBlock], the last block
// filled with zeros.
inline constexpr int64_t kUnitBlock = 16;
// Rows of a batch that take one step together.
inline constexpr int64_t kRecurrentRowsMax = 4;

// One step of some rows of a batch, in one direction. Strides are in floats.
struct RecurrentStep {
  int64_t hidden = 0;
  int64_t rows = 0;  // at most kRecurrentRowsMax
  const float* weights = nullptr;
  const float* bias = nullptr;      // of the GRU's last gate, [hidden]; or nullptr
  const float* input = nullptr;     // [gates][hidden] of the first row
  int64_t input_stride = 0;         // from row to row
  const float* previous = nullptr;  // [rows][hidden], the states before; nullptr: zeros
  float* next = nullptr;            // [rows][hidden], the states after
  float* memory = nullptr;          // [rows][hidden], what an LSTM's cells hold, before and after
};

// Makes the states of units [first, last); `first` is a multiple of kUnitBlock. What
// a row's result is does not depend on how many rows there are, nor on the range.
using TakeRecurrentStep = void (*)(const RecurrentStep& step, int64_t first, int64_t last);

TakeRecurrentStep find_recurrent_step(RecurrentCell cell);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_RECURRENT_STEPS_H_
