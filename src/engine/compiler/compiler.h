// Compiler: turns an ONNX model into a program (docs/ARCHITECTURE.md, "Life of a
// model").
//
//   read and check -> fix dimensions -> infer shapes -> fold constants and
//   BatchNormalization -> fuse -> narrow -> one graph per batch size and bucket ->
//   Device::lower -> memory plan -> weights in pages -> profile
//
// Model files come from outside: whatever is in them, the result is a program or
// an error that names the file and, where there is one, the node.
#ifndef FOLIOT_ENGINE_COMPILER_COMPILER_H_
#define FOLIOT_ENGINE_COMPILER_COMPILER_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compiler/declared_tensor.h"
#include "engine/device/device.h"
#include "engine/program/program.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

// In what a float32 model is computed, where Device::supports_products(). Models that
// are quantised themselves (QDQ, as onnxruntime's quantizer writes them) compute in
// int8 under either, where the device supports that.
enum class Precision : uint8_t {
  kFloat32,
  kBfloat16,  // convolutions and products, and what lies between them
};

std::string_view to_string(Precision precision);  // "float32"
std::optional<Precision> parse_precision(std::string_view name);

struct CompileOptions {
  // A model whose batch dimension cannot be freed is compiled for its own size,
  // with Program::batching == false.
  std::vector<uint32_t> batch_sizes{1, 2, 4, 8, 16};
  // Values of symbolic dimensions other than the batch: each name with its
  // values, ascending. Several names are combined position by position, so all
  // lists have one length. Example: {"sequence": {32, 64, 128}}.
  std::map<std::string, std::vector<int64_t>> buckets;
  // Names of the symbolic batch dimension: exporters may give it another one in each
  // input. Empty: the first dimensions, if the model can be batched along them.
  std::vector<std::string> batch_dimensions;
  Precision precision = Precision::kFloat32;
  uint64_t page_bytes = uint64_t{16} << 20;
  // Runs of each plan that make the seed profile; after profile_time no further one begins.
  uint32_t profile_runs = 5;
  Duration profile_time = Duration::milliseconds(300);
  uint64_t workspace_bytes_max = uint64_t{4} << 30;
  // Only the smallest of the batch sizes, as soon as possible: in the first layout that
  // the device proposes, and with a short profile. Inputs, outputs and answers are those
  // of the whole program.
  bool first_size_only = false;
  // Every file beside the model may be part of it. Otherwise only those are whose names begin with its own,
  // as net.onnx.data does of net.onnx: the model lies among files of others.
  bool owns_folder = true;
  // Inputs and outputs that the model must have, or it is not compiled. Their fixed extents are those of dimensions
  // that vary in the model and are in no bucket.
  std::vector<DeclaredTensor> declared{};
};

struct CompiledProgram {
  Program program;
  std::vector<std::byte> weights;  // program.weights_bytes of them
  // For lower precision than float32: the largest difference of an output from the same
  // model in float32, on random input, as a share of that output's largest value.
  std::optional<double> narrowing_error;
};

// Called as work goes on: what is being done ("lowering batch 4"), and how much
// of the whole is done, in [0, 1].
using Progress = std::function<void(std::string_view step, double share)>;

// All that a program depends on beside the model and the device: the options and
// this compiler's version.
std::string compile_fingerprint(const CompileOptions& options);

// Program::content_hash: a hash of the model file (external data included), the options
// and the device's fingerprint.
Result<std::string> compile_key(const std::filesystem::path& model, const CompileOptions& options,
                                const Device& device);

// `device` must be fresh (allocate() not called): profiling allocates and uses it.
// After an error or a success it can only be destroyed. What the device has no fast and
// exact kernels for is computed in float32, with the reason in Program::notes.
Result<CompiledProgram> compile(const std::filesystem::path& model, const CompileOptions& options, Device& device,
                                const Progress& progress = {});

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_COMPILER_H_
