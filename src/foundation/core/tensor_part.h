// TensorPart: one of so many equal parts of a tensor, along its first dimension.
#ifndef FOLIOT_FOUNDATION_CORE_TENSOR_PART_H_
#define FOLIOT_FOUNDATION_CORE_TENSOR_PART_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace foliot {

struct TensorPart {
  uint32_t index = 0;
  uint32_t of = 1;  // above index

  bool operator==(const TensorPart&) const = default;
};

// REQUIRES: bytes.size() is a multiple of part.of.
template <typename Byte>
std::span<Byte> part_of(std::span<Byte> bytes, TensorPart part) {
  const size_t size = bytes.size() / part.of;
  return bytes.subspan(part.index * size, size);
}

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_TENSOR_PART_H_
