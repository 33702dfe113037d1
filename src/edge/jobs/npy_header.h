// NpyHeader: the header of a file in NumPy's .npy format, versions 1.0 and 2.0: the type and the shape of its elements,
// which follow densely, row-major and little-endian.
#ifndef FOLIOT_EDGE_JOBS_NPY_HEADER_H_
#define FOLIOT_EDGE_JOBS_NPY_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "foundation/base/status.h"
#include "foundation/core/tensor.h"

namespace foliot {

struct NpyHeader {
  DataType type = DataType::kFloat32;  // never kBytes
  Shape shape;
  uint64_t data_offset = 0;  // of the elements in the file

  // Of the whole file.
  uint64_t file_bytes() const { return data_offset + byte_size(type, shape); }
};

// What stands in front of the elements has at most so many bytes: as many as version 1.0 can have.
inline constexpr size_t kNpyHeaderBytesMax = (64 << 10) + 16;

// `file`: its first bytes, kNpyHeaderBytesMax or all. Errors: kInvalidArgument for what is damaged, big-endian, in
// Fortran's order or of a type that no tensor has, as a part of a sentence ("is no ...").
Result<NpyHeader> parse_npy_header(std::span<const std::byte> file);

// The header of version 1.0, with which such a file begins. BF16, which NumPy does not know, is written as uint16.
// REQUIRES: not kBytes.
std::string npy_header(DataType type, const Shape& shape);

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_NPY_HEADER_H_
