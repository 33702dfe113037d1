// Element types of ONNX that no device has: integers of 2 and 4 bits, floats of 4 and 8. Weights have them; they become
// the next type that holds all of their values.
// Source: onnx.proto, TensorProto.DataType; docs/docsgen/source/technical of onnx: float8, float4, int4, int2.
#ifndef FOLIOT_ENGINE_COMPILER_SMALL_TYPES_H_
#define FOLIOT_ENGINE_COMPILER_SMALL_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foundation/core/tensor.h"

namespace foliot {

struct SmallType {
  int number;  // TensorProto::DataType
  int bits;
  DataType wide;
};

// nullptr: it is none of them.
const SmallType* find_small_type(int number);

// Elements lie one after another from the lowest bit on; the last byte may not be full.
uint64_t packed_bytes(const SmallType& type, uint64_t elements);

// The elements as `type.wide`. REQUIRES: packed has packed_bytes().
std::vector<std::byte> widen(const SmallType& type, std::span<const std::byte> packed, uint64_t elements);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_SMALL_TYPES_H_
