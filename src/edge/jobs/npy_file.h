// NpyFile: one array in NumPy's .npy format.
#ifndef FOLIOT_EDGE_JOBS_NPY_FILE_H_
#define FOLIOT_EDGE_JOBS_NPY_FILE_H_

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/core/tensor.h"

namespace foliot {

struct NpyArray {
  DataType type = DataType::kFloat32;
  Shape shape;
  std::vector<std::byte> bytes;  // dense row-major, little-endian
};

// Errors: kNotFound; kInvalidArgument for what is damaged, big-endian, in
// Fortran's order or of a type that no tensor has. All name the file.
Result<NpyArray> read_npy(const std::filesystem::path& path);
// The same of what such a file has; `name` is what errors call it.
Result<NpyArray> parse_npy(std::string_view content, const std::string& name);

// bfloat16, which NumPy does not know, is written as uint16. Errors: kInternal,
// naming the file.
Status write_npy(const std::filesystem::path& path, const NpyArray& array);

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_NPY_FILE_H_
