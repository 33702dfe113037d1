// Compile protocol: the messages between the server and a compiling process: one
// request, as the process's standard input; then lines on its standard output.
//
// The server does not trust these lines: anything can be in one.
#ifndef FOLIOT_MODELS_REPOSITORY_COMPILE_DIALOGUE_H_
#define FOLIOT_MODELS_REPOSITORY_COMPILE_DIALOGUE_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>

#include "engine/compiler/compiler.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

// What a compilation gets of the CPU.
enum class CpuShare : uint8_t {
  kWhole,     // an equal share: no requests are being served
  kLeftover,  // only what no other process wants
  kSmall,     // a little even if other processes want it
};

struct CompileRequest {
  std::filesystem::path model;  // the .onnx file
  CompileOptions options;
  uint32_t threads = 1;  // of one EXEC
  std::string gpu{};     // VulkanOptions::which; empty: it is compiled for the CPU
  CpuShare share = CpuShare::kWhole;
  uint64_t memory_bytes = 0;  // of address space; 0: no limit
  Duration cpu_time;          // zero: no limit
};

std::string encode_request(const CompileRequest& request);
// Errors: kInvalidArgument.
Result<CompileRequest> decode_request(std::string_view bytes);

struct CompileStep {
  std::string step;
  double share = 0;  // in [0, 1]
};
// A part of its confinement that is not available.
struct CompileUnconfined {
  std::string what;
};
// The last line.
struct CompileEnd {
  Status status;
};
using CompileLine = std::variant<CompileStep, CompileUnconfined, CompileEnd>;

std::string encode_line(const CompileLine& line);  // ends with a newline
// Errors: kInvalidArgument.
Result<CompileLine> decode_line(std::string_view line);

}  // namespace foliot

#endif  // FOLIOT_MODELS_REPOSITORY_COMPILE_DIALOGUE_H_
