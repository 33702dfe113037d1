// OutputFile: a .npy file whose rows are written in any order. All of its room is taken when it is made, so that a full
// disk is an error then; and it has its name once its header is there.
//
// Written rows last once sync() has returned.
#ifndef FOLIOT_EDGE_JOBS_OUTPUT_FILE_H_
#define FOLIOT_EDGE_JOBS_OUTPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "edge/jobs/npy_header.h"
#include "foundation/base/status.h"
#include "foundation/core/tensor.h"
#include "foundation/platform/descriptor.h"

namespace foliot {

// Threading: one at a time.
class OutputFile {
 public:
  // NAME.npy in the folder; one of an earlier run goes on. `is_begun`: there must be one. Errors name the file:
  // kResourceExhausted if there is no room; kInvalidArgument for a name that no file can have, for a type that .npy
  // cannot have, or if what is there is another array.
  static Result<OutputFile> open(const Descriptor& folder, const std::string& name, DataType type, Shape row_shape,
                                 uint64_t rows, bool is_begun);

  bool has(DataType type, const Shape& row_shape) const { return type == type_ && row_shape == row_shape_; }
  const Shape& row_shape() const { return row_shape_; }
  // Errors: kResourceExhausted, kInternal. REQUIRES: the bytes are of whole rows.
  Status write(uint64_t begin, std::span<const std::byte> bytes);
  Status sync();
  // Whether it is still found in this folder.
  bool is_in(const Descriptor& folder) const;
  const std::string& file_name() const { return file_name_; }

 private:
  OutputFile(std::string file_name, Descriptor file, DataType type, Shape row_shape, uint64_t data_offset)
      : file_name_(std::move(file_name)),
        file_(std::move(file)),
        type_(type),
        row_shape_(std::move(row_shape)),
        row_bytes_(byte_size(type_, row_shape_)),
        data_offset_(data_offset) {}

  std::string file_name_;
  Descriptor file_;
  DataType type_;
  Shape row_shape_;
  uint64_t row_bytes_;
  uint64_t data_offset_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_OUTPUT_FILE_H_
