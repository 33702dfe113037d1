// Reader of ONNX files, external data included.
//
// Errors: kNotFound, kInvalidArgument (not ONNX, truncated, inconsistent) and
// kUnimplemented (element types, opsets before 7), all naming the file.
#ifndef FOLIOT_ENGINE_COMPILER_ONNX_READER_H_
#define FOLIOT_ENGINE_COMPILER_ONNX_READER_H_

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "engine/compiler/onnx_model.h"
#include "foundation/base/status.h"

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

// Whether `file` is of a model that lies among files of others: it lies beside it, and its name begins
// with the model's, as net.onnx.data and net_weights.bin do with that of net.onnx.
bool is_named_after(const std::filesystem::path& file, const std::filesystem::path& model);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_ONNX_READER_H_
