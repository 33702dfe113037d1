// ContainerDescription: the inputs and outputs of a container, which its process sends as
// JSON once its model is loaded, and how the tensors of a batch lie in memory.
//
//   {"protocol": 1,
//    "inputs":  [{"name": "x", "datatype": "FP32", "shape": [784]}],
//    "outputs": [{"name": "y", "datatype": "INT64", "shape": []}],
//    "batch_size_max": 64}                                          (optional)
//
// Shapes are those of one row. A dimension that varies is -1, with its bound at that place of
// "shape_max"; strings ("BYTES") have the bound "string_bytes_max" for a row. In a batch tensor
// 0 lies first, tensor k + 1 where tensor k ends, rounded up to kTensorAlignment; each is rows x
// shape, dense, row-major, or one row of foundation/core/bounded_row.h after another.
//
// Threading: none.
#ifndef FOLIOT_ENGINE_CONTAINER_CONTAINER_DESCRIPTION_H_
#define FOLIOT_ENGINE_CONTAINER_CONTAINER_DESCRIPTION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/core/action.h"
#include "foundation/core/tensor.h"

namespace foliot {

inline constexpr uint32_t kContainerProtocol = 1;
inline constexpr size_t kContainerDescriptionBytesMax = 64 << 10;
// Of the inputs, and of the outputs.
inline constexpr size_t kContainerTensorsMax = 64;
inline constexpr size_t kContainerNameBytesMax = 255;
inline constexpr size_t kContainerRankMax = 32;
// One row of all inputs, and one of all outputs.
inline constexpr uint64_t kContainerRowBytesMax = uint64_t{64} << 20;

// All inputs of a batch, and all outputs: some batches' memory is taken when a container starts.
inline constexpr uint64_t kContainerBatchBytesMax = uint64_t{256} << 20;
// Of a container that has none of its own: memory, and the time to profile it, grow with it.
inline constexpr uint32_t kContainerBatchSizeDefault = 64;

struct ContainerDescription {
  std::vector<TensorSpec> inputs;  // at least one, as of outputs; names are unique in each
  std::vector<TensorSpec> outputs;
  // Of each input, a row that the model can compute; empty: zeros and empty strings.
  std::vector<std::string> examples;
  // 1 to kBatchSizeMax; less than was sent where kContainerBatchBytesMax does not have room.
  uint32_t batch_size_max = kContainerBatchSizeDefault;

  // Of a batch with so many rows, rounded up to kTensorAlignment.
  uint64_t input_bytes(uint32_t rows) const;
  uint64_t output_bytes(uint32_t rows) const;
};

// Writes the inputs of a batch, from the beginning of the memory on: the examples, or else zeros and empty strings, of
// the largest extents.
void write_examples(const ContainerDescription& description, uint32_t rows, std::span<std::byte> memory);

// Where the tensor after one of so many bytes begins.
uint64_t aligned_tensor_bytes(uint64_t bytes);

// `batch_size_default`: of one that names none. Errors: kInvalidArgument; the message names the
// field, its value and the limit. Threading: any thread.
Result<ContainerDescription> parse_description(std::string_view json,
                                               uint32_t batch_size_default = kContainerBatchSizeDefault);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_CONTAINER_CONTAINER_DESCRIPTION_H_
