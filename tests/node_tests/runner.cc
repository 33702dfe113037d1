// Compiles and runs small ONNX models, one after another, for node_tests.py and
// test_independent_rows.py.
//
// Reads lines "FOLDER BATCH" or "FOLDER rows" from standard input. The first: The folder holds model.onnx and
// input_0.bin, input_1.bin, ...: the model's inputs in order, dense row-major.
// The model is compiled for BATCH rows through the whole compiler and run once on
// the CPU device; the outputs go to output_0.bin, ... One line answers each:
//   ok TAB one "TYPE EXTENT EXTENT ..." for each output, between TABs
//   refused TAB one row for each that an operator refused, between spaces
//   error TAB message
// The second compiles for several batch sizes and runs every plan on the first rows of
// TRIAL_input_0.bin, ..., for TRIAL 0, 1, ... as far as there are files. The outputs go to
// TRIAL_ROWS_output_0.bin, ..., and the rows that an operator refused, if any, to TRIAL_ROWS_refused. The answer:
//   ok TAB "batched" or "single" TAB rows of each plan TAB notes
// ROWS is the batch size or, of a model that is not batched, the size of its first dimension.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "engine/compiler/compiler.h"
#include "engine/compiler/program_runner.h"
#include "engine/device/cpu/cpu_device.h"

namespace foliot {
namespace {

constexpr CpuDeviceOptions kDevice{.threads = 1, .lock_memory = false};

// The beginning of each file, named after `prefix` and the input.
Status read_inputs(const std::filesystem::path& folder, std::string_view prefix, const Plan& plan,
                   std::span<std::byte> block) {
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const Tensor& tensor = plan.tensors[plan.inputs[i]];
    const std::filesystem::path path = folder / fmt::format("{}input_{}.bin", prefix, i);
    std::ifstream file(path, std::ios::binary);
    const uint64_t bytes = file ? std::filesystem::file_size(path) : 0;
    const bool fits = prefix.empty() ? bytes == tensor.bytes : bytes >= tensor.bytes;
    if (fits)
      file.read(reinterpret_cast<char*>(block.data() + tensor.offset), static_cast<std::streamsize>(tensor.bytes));
    if (!file || !fits)
      return Status::invalid_argument(fmt::format("{} does not hold {} bytes", path.string(), tensor.bytes));
  }
  return {};
}

// Returns the outputs' types and shapes.
std::string write_outputs(const std::filesystem::path& folder, std::string_view prefix, const Plan& plan,
                          std::span<const std::byte> block) {
  std::string summary;
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const Tensor& tensor = plan.tensors[plan.outputs[i]];
    std::ofstream file(folder / fmt::format("{}output_{}.bin", prefix, i), std::ios::binary);
    file.write(reinterpret_cast<const char*>(block.data() + tensor.offset), static_cast<std::streamsize>(tensor.bytes));
    summary += fmt::format("\t{} {}", to_string(tensor.type), fmt::join(tensor.shape, " "));
  }
  return summary;
}

// Of the last run, between spaces.
std::string refused_rows(const ProgramRunner& runner) {
  std::string rows;
  for (uint32_t row = 0; row < kBatchSizeMax; ++row)
    if (runner.failed_rows()[row]) rows += fmt::format("{}{}", rows.empty() ? "" : " ", row);
  return rows;
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
  FOLIOT_RETURN_IF_ERROR(read_inputs(folder, "", plan, input));
  FOLIOT_RETURN_IF_ERROR(runner->run(0, input, output).status());
  if (runner->failed_rows().any()) return "refused\t" + refused_rows(*runner);
  return "ok" + write_outputs(folder, "", plan, output);
}

// Rows of a plan: its batch, or the first dimension that the model does not fix.
int64_t rows_of(const Program& program, size_t position) {
  const Plan& plan = program.plans[position];
  if (program.batching) return plan.batch_size;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Shape& shape = plan.tensors[plan.inputs[i]].shape;
    if (!shape.empty() && program.inputs[i].shape[0] == -1) return shape[0];
  }
  return 1;
}

Result<std::string> run_rows(const std::filesystem::path& folder) {
  CompileOptions options;
  options.batch_sizes = {1, 2, 4, 6};
  options.page_bytes = uint64_t{1} << 20;
  options.profile_runs = 1;
  const auto compiler_device = make_cpu_device(kDevice);
  FOLIOT_ASSIGN_OR_RETURN(const CompiledProgram compiled, compile(folder / "model.onnx", options, *compiler_device));
  const Program& program = compiled.program;
  const auto device = make_cpu_device(kDevice);
  FOLIOT_ASSIGN_OR_RETURN(const auto runner, ProgramRunner::create(*device, program, compiled.weights));
  std::vector<int64_t> rows;
  for (size_t i = 0; i < program.plans.size(); ++i) {
    const Plan& plan = program.plans[i];
    rows.push_back(rows_of(program, i));
    std::vector<std::byte> input(plan.input_bytes), output(plan.output_bytes);
    for (int trial = 0; std::filesystem::exists(folder / fmt::format("{}_input_0.bin", trial)); ++trial) {
      FOLIOT_RETURN_IF_ERROR(read_inputs(folder, fmt::format("{}_", trial), plan, input));
      FOLIOT_RETURN_IF_ERROR(runner->run(i, input, output).status());
      write_outputs(folder, fmt::format("{}_{}_", trial, rows.back()), plan, output);
      if (runner->failed_rows().any())
        std::ofstream(folder / fmt::format("{}_{}_refused", trial, rows.back())) << refused_rows(*runner);
    }
  }
  return fmt::format("ok\t{}\t{}\t{}", program.batching ? "batched" : "single", fmt::join(rows, " "),
                     fmt::join(program.notes, " | "));
}

}  // namespace
}  // namespace foliot

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string folder, what;
    words >> folder >> what;
    const foliot::Result<std::string> summary =
        what == "rows" ? foliot::run_rows(folder)
                       : foliot::run(folder, static_cast<uint32_t>(std::strtoul(what.c_str(), nullptr, 10)));
    if (summary.ok()) {
      fmt::print("{}\n", *summary);
    } else {
      std::string message = summary.status().message();
      std::ranges::replace(message, '\n', ' ');
      fmt::print("error\t{}\n", message);
    }
    std::fflush(stdout);
  }
  return 0;
}
