// Plan: a graph lowered for one kind of device, with a place for every tensor.
// Static: nothing about memory is decided when it runs.
//
// A plan is a list of operators, and any OperatorRange of it can be run, its live
// intermediates staying in the context until the next range.
#ifndef FOLIOT_ENGINE_DEVICE_PLAN_H_
#define FOLIOT_ENGINE_DEVICE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/device/operator.h"
#include "foundation/core/tensor.h"

namespace foliot {

using TensorIndex = uint32_t;
inline constexpr TensorIndex kNoTensor = ~TensorIndex{0};

enum class Place : uint8_t {
  kWeights,    // offset: bytes from the start of the program's weights
  kWorkspace,  // offset: bytes from the start of the workspace
  kInput,      // offset: bytes from the start of this plan's input block
  kOutput,     // offset: bytes from the start of this plan's output block
};

struct Tensor {
  std::string name;
  DataType type = DataType::kFloat32;
  Shape shape;         // logical
  std::string layout;  // bytes that only the device reads; empty: dense row-major
  uint64_t bytes = 0;  // in this layout
  Place place = Place::kWorkspace;
  uint64_t offset = 0;  // a multiple of kTensorAlignment unless aliased
  // Lowering may say that this tensor shares the storage of another of the same
  // plan, `alias_offset` bytes in: a view, or a result written over an operand.
  // The memory planner then keeps the storage alive as long as any of them is.
  TensorIndex alias_of = kNoTensor;
  uint64_t alias_offset = 0;
  // Place::kWeights, before offsets are assigned: index into LoweredProgram::constants.
  uint32_t constant = 0;
};

inline constexpr uint64_t kTensorAlignment = 64;

struct Operator {
  OperatorKind kind;
  std::string name;
  std::vector<TensorIndex> inputs;  // kNoTensor where left out
  std::vector<TensorIndex> outputs;
  Attributes attributes;
  std::vector<PostOperation> post_operations;
  // Memory for the operator's own use while it runs; kNoTensor: none.
  TensorIndex scratchpad = kNoTensor;
  std::string kernel;  // which kernel the device chose, for reports
};

struct Plan {
  uint32_t batch_size = 1;
  uint16_t bucket = 0;
  std::vector<Tensor> tensors;
  std::vector<Operator> operators;
  std::vector<TensorIndex> inputs;   // Place::kInput, dense row-major
  std::vector<TensorIndex> outputs;  // Place::kOutput, dense row-major, each a tensor of its own
  uint64_t workspace_bytes = 0;
  uint64_t input_bytes = 0;   // of the input block; inputs[i] begins at its tensor's offset
  uint64_t output_bytes = 0;  // of the output block
};

// What a device's lowering returns: plans whose tensors have sizes but no
// offsets yet, and the constants packed as their kernels want them.
struct LoweredProgram {
  std::vector<Plan> plans;                        // one per graph, in order
  std::vector<std::vector<std::byte>> constants;  // one packing for all plans
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_PLAN_H_
