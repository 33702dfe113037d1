// Compiles and runs small ONNX models, one after another, for node_tests.py.
//
// Reads lines "FOLDER BATCH" from standard input. The folder holds model.onnx and
// input_0.bin, input_1.bin, ...: the model's inputs in order, dense row-major.
// The model is compiled for BATCH rows through the whole compiler and run once on
// the CPU device; the outputs go to output_0.bin, ... One line answers each:
//   ok TAB one "TYPE EXTENT EXTENT ..." for each output, between TABs
//   error TAB message
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "compiler/program_runner.h"
#include "device/cpu/cpu_device.h"

namespace foliot {
namespace {

constexpr CpuDeviceOptions kDevice{.threads = 1, .lock_memory = false};

Status read_inputs(const std::filesystem::path& folder, const Plan& plan, std::span<std::byte> block) {
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const Tensor& tensor = plan.tensors[plan.inputs[i]];
    const std::filesystem::path path = folder / fmt::format("input_{}.bin", i);
    std::ifstream file(path, std::ios::binary);
    if (!file || std::filesystem::file_size(path) != tensor.bytes) {
      return Status::invalid_argument(fmt::format("{} does not hold {} bytes", path.string(), tensor.bytes));
    }
    file.read(reinterpret_cast<char*>(block.data() + tensor.offset), static_cast<std::streamsize>(tensor.bytes));
  }
  return {};
}

// Returns the outputs' types and shapes.
std::string write_outputs(const std::filesystem::path& folder, const Plan& plan, std::span<const std::byte> block) {
  std::string summary;
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const Tensor& tensor = plan.tensors[plan.outputs[i]];
    std::ofstream file(folder / fmt::format("output_{}.bin", i), std::ios::binary);
    file.write(reinterpret_cast<const char*>(block.data() + tensor.offset), static_cast<std::streamsize>(tensor.bytes));
    summary += fmt::format("\t{} {}", to_string(tensor.type), fmt::join(tensor.shape, " "));
  }
  return summary;
}

Result<std::string> run(const std::filesystem::path& folder, uint32_t batch) {
  CompileOptions options;
  options.batch_sizes = {batch};
  options.page_bytes = uint64_t{1} << 20;
  options.profile_runs = 1;
  const auto compiler_device = make_cpu_device(kDevice);
  FOLIOT_ASSIGN_OR_RETURN(const CompiledProgram compiled, compile(folder / "model.onnx", options, *compiler_device));
  const auto device = make_cpu_device(kDevice);
  FOLIOT_ASSIGN_OR_RETURN(const auto runner, ProgramRunner::create(*device, compiled.program, compiled.weights));
  const Plan& plan = compiled.program.plans.front();
  std::vector<std::byte> input(plan.input_bytes), output(plan.output_bytes);
  FOLIOT_RETURN_IF_ERROR(read_inputs(folder, plan, input));
  FOLIOT_RETURN_IF_ERROR(runner->run(0, input, output).status());
  return write_outputs(folder, plan, output);
}

}  // namespace
}  // namespace foliot

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string folder;
    uint32_t batch = 1;
    words >> folder >> batch;
    const foliot::Result<std::string> summary = foliot::run(folder, batch);
    if (summary.ok()) {
      fmt::print("ok{}\n", *summary);
    } else {
      std::string message = summary.status().message();
      std::ranges::replace(message, '\n', ' ');
      fmt::print("error\t{}\n", message);
    }
    std::fflush(stdout);
  }
  return 0;
}
