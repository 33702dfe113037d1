// Tensors whose rows vary in size (foundation/core/bounded_row.h), between a client, which has one
// tensor of all rows, and the memory of the rows.
//
// Threading: pure functions.
#ifndef FOLIOT_ANSWER_MODEL_CALLS_BOUNDED_TENSOR_H_
#define FOLIOT_ANSWER_MODEL_CALLS_BOUNDED_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "foundation/base/status.h"
#include "foundation/core/tensor.h"

namespace foliot {

// The memory of all rows, of a tensor whose rows have these extents each. Errors:
// kInvalidArgument, naming the tensor, its limit and what came. REQUIRES: the extents are within
// the tensor's bound.
Result<std::string> to_rows(const TensorSpec& tensor, const Shape& extents, uint32_t rows,
                            std::span<const std::byte> elements);

struct ClientTensor {
  Shape extents;  // of one row
  // Rows had different extents: those with less have zeros, or empty strings, behind theirs.
  bool padded = false;
  std::string bytes;
};

// What a client gets of the memory of so many rows. What is no row is one of the smallest
// extents: the engine lets none through, a worker of another machine might.
ClientTensor from_rows(const TensorSpec& tensor, uint32_t rows, std::span<const std::byte> memory);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_MODEL_CALLS_BOUNDED_TENSOR_H_
