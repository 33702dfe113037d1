// A row of a tensor with a RowBound: strings, or dimensions without buckets. Rows vary in
// size and lie in memory of one size, so that nothing between the front end and the model
// has to know how large each is:
//
//   u64 the extent of each variable dimension, in their order
//       the elements, row-major: numbers dense; of each string its u32 length, then its bytes
//       anything, up to bounded_row_bytes()
//
// Integers are little-endian. The elements are as the Open Inference Protocol sends them.
//
// Threading: pure functions. None but extents_of() allocates.
#ifndef FOLIOT_FOUNDATION_CORE_BOUNDED_ROW_H_
#define FOLIOT_FOUNDATION_CORE_BOUNDED_ROW_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "foundation/base/status.h"
#include "foundation/core/tensor.h"

namespace foliot {

// Of a row's memory.
inline constexpr uint64_t kBoundedRowBytesMax = uint64_t{64} << 20;

// Whether the tensor's type, shape and bound, if it has one, go together, and a row is not too
// large. Errors: kInvalidArgument, of which the message names the tensor.
Status check_bound(const TensorSpec& tensor);

// Of the memory; a multiple of 8. REQUIRES: a bound that check_bound() accepts, as of all below.
uint64_t bounded_row_bytes(const TensorSpec& tensor);

// How much of the memory the row takes; nullopt: what is there is no row of this tensor.
std::optional<uint64_t> used_bytes(const TensorSpec& tensor, std::span<const std::byte> memory);
// REQUIRES: used_bytes() finds a row.
Shape extents_of(const TensorSpec& tensor, std::span<const std::byte> memory);
std::span<const std::byte> elements_of(const TensorSpec& tensor, std::span<const std::byte> memory);

// Writes a row; false, and nothing written, if the elements do not fit. REQUIRES: `extents` are
// within the bound, the elements are as many, and the memory has bounded_row_bytes().
bool write_row(const TensorSpec& tensor, const Shape& extents, std::span<const std::byte> elements,
               std::span<std::byte> memory);

// Writes the row of the largest extents that has zeros, or empty strings. REQUIRES: as write_row().
void write_zeros(const TensorSpec& tensor, std::span<std::byte> memory);

// How many bytes so many strings take, from the first on; nullopt: they go on beyond the end.
std::optional<uint64_t> strings_bytes(std::span<const std::byte> bytes, uint64_t count);
// Of a string before its bytes.
inline constexpr uint64_t kStringLengthBytes = sizeof(uint32_t);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_BOUNDED_ROW_H_
