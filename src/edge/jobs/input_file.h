// InputFile: the rows of one .npy file, read in pieces.
//
// The file must not change while a job reads it: identity() changes with it.
#ifndef FOLIOT_EDGE_JOBS_INPUT_FILE_H_
#define FOLIOT_EDGE_JOBS_INPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "edge/jobs/job_folder.h"
#include "edge/jobs/npy_header.h"
#include "foundation/base/status.h"
#include "foundation/platform/descriptor.h"

namespace foliot {

// Threading: one at a time.
class InputFile {
 public:
  // Errors name the path: kNotFound; kInvalidArgument for what is no .npy file of rows.
  static Result<InputFile> open(const JobFolder& folder, const std::string& path);

  DataType type() const { return header_.type; }
  uint64_t rows() const { return static_cast<uint64_t>(header_.shape.front()); }
  // Of one row.
  const Shape& row_shape() const { return row_shape_; }
  uint64_t row_bytes() const { return row_bytes_; }
  // Another text when the file was written to, or is another file.
  const std::string& identity() const { return identity_; }
  // Errors: kInvalidArgument if the file was written to since it was opened, as far as its times show that.
  Status check_unchanged() const;

  // Replaces `bytes` by these rows. Errors: kInvalidArgument if the file has become shorter, kInternal.
  Status read(uint64_t begin, uint64_t end, std::vector<std::byte>& bytes) const;

 private:
  InputFile(std::string path, Descriptor file, NpyHeader header, std::string identity)
      : path_(std::move(path)),
        file_(std::move(file)),
        header_(std::move(header)),
        row_shape_(header_.shape.begin() + 1, header_.shape.end()),
        row_bytes_(byte_size(header_.type, row_shape_)),
        identity_(std::move(identity)) {}

  std::string path_;
  Descriptor file_;
  NpyHeader header_;
  Shape row_shape_;
  uint64_t row_bytes_ = 0;
  std::string identity_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_INPUT_FILE_H_
