// Reader of ONNX files, external data included.
//
// Errors: kNotFound, kInvalidArgument (not ONNX, truncated, inconsistent) and
// kUnimplemented (element types, opsets before 7), all naming the file.
#ifndef FOLIOT_COMPILER_ONNX_READER_H_
#define FOLIOT_COMPILER_ONNX_READER_H_

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "base/status.h"
#include "compiler/onnx_model.h"

namespace foliot {

Result<OnnxModel> read_onnx(const std::filesystem::path& path);

// The bytes of the model file alone.
Result<std::vector<std::byte>> read_onnx_file(const std::filesystem::path& path);

// As read_onnx, from memory; external data is looked for in `folder`.
Result<OnnxModel> parse_onnx(std::span<const std::byte> bytes, const std::filesystem::path& folder);

// The model file and all files of external data, in a fixed order.
Result<std::vector<std::filesystem::path>> list_onnx_files(const std::filesystem::path& path);

// The same of a file with these bytes.
Result<std::vector<std::filesystem::path>> list_onnx_files(const std::filesystem::path& path,
                                                           std::span<const std::byte> bytes);

}  // namespace foliot

#endif  // FOLIOT_COMPILER_ONNX_READER_H_
