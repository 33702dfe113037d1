#include "app/commands/compile_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/commands/compile_report.h"
#include "app/commands/part_flags.h"
#include "app/commands/progress_bar.h"
#include "engine/compiler/compiler.h"
#include "engine/compiler/onnx_reader.h"
#include "engine/device/cpu/cpu_device.h"
#include "engine/program/package.h"
#include "foundation/base/units.h"
#include "models/repository/model_config.h"

namespace foliot {
namespace {

struct CompileCommandOptions {
  std::filesystem::path model;
  std::filesystem::path output;
  std::vector<uint32_t> batch_sizes;
  std::string precision;
  uint32_t threads = 1;
  std::optional<uint32_t> profile_runs;
  bool report = false;
  std::filesystem::path report_json;
};

void print_summary(const Program& program, const std::filesystem::path& output) {
  fmt::print("{}: {} of weights, workspace {}, LOAD {}\n", output.string(), format_bytes(program.weights_bytes),
             format_bytes(program.workspace_bytes()), format_duration(program.seed_load));
  for (const ProgramBucket& bucket : program.buckets) {
    std::string name;
    for (const auto& [dimension, size] : bucket.dimensions) name += fmt::format(" {}={}", dimension, size);
    for (size_t i = 0; i < program.batch_sizes.size(); ++i) {
      fmt::print("  EXEC batch {:2}{}: {}\n", program.batch_sizes[i], name, format_duration(bucket.seed_exec[i]));
    }
  }
}

void print_notes(const Program& program) {
  for (const std::string& note : program.notes) fmt::print(stderr, "warning: {}\n", note);
}

// On a device of its own: the compiler has used up the one that it had.
Status write_report(const CompiledProgram& compiled, const CompileCommandOptions& options) {
  const auto device = make_cpu_device({.threads = options.threads});
  FOLIOT_ASSIGN_OR_RETURN(const CompileReport report, measure_operators(compiled.program, compiled.weights, *device));
  if (options.report) fmt::print("{}{}", report_text(compiled.program, report), narrowing_text(compiled));
  if (options.report_json.empty()) return {};
  std::ofstream file(options.report_json);
  file << report_json(compiled, report) << std::flush;
  return file ? Status() : Status::internal(fmt::format("cannot write {}", options.report_json.string()));
}

int run(const CompileCommandOptions& options) {
  const auto fail = [](const Status& status) {
    fmt::print(stderr, "foliot compile: {}\n", status.message());
    return 1;
  };
  const auto config = read_model_config(config_file_of(options.model), ModelConfig());
  if (!config.ok()) {
    // A file that is no model is reported as such, before errors of model.toml.
    const auto model = read_onnx(options.model);
    return fail(model.ok() ? config.status() : model.status());
  }
  CompileOptions compile_options = config->compile;
  if (!options.precision.empty()) compile_options.precision = *parse_precision(options.precision);
  if (!options.batch_sizes.empty()) compile_options.batch_sizes = options.batch_sizes;
  compile_options.profile_runs = options.profile_runs.value_or(compile_options.profile_runs);
  if (options.profile_runs) compile_options.profile_time = Duration::max();

  const auto device = make_cpu_device({.threads = options.threads});
  ProgressBar bar;
  const auto compiled = compile(options.model, compile_options, *device, [&](std::string_view step, double share) {
    bar.show(options.model.string(), step, share);
  });
  bar.clear();
  if (!compiled.ok()) return fail(compiled.status());
  const auto output =
      options.output.empty() ? std::filesystem::path(options.model).replace_extension(".foliot") : options.output;
  if (const Status status = write_package(output, compiled->program, compiled->weights); !status.ok()) {
    return fail(status);
  }
  print_summary(compiled->program, output);
  print_notes(compiled->program);
  if (!options.report && options.report_json.empty()) return 0;
  const Status status = write_report(*compiled, options);
  return status.ok() ? 0 : fail(status);
}

}  // namespace

void add_compile_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("compile", "Compile an ONNX model and report its operators and times");
  command->footer(
      "`foliot serve` compiles by itself; this is for looking at one model, or for compiling ahead. A\n"
      "model.toml beside the model, or beside the folder of its version, applies; `foliot init` writes one.\n\n"
      "  foliot compile models/resnet50/model.onnx --report");
  auto options = std::make_shared<CompileCommandOptions>();
  options->threads = default_threads();
  command->add_option("model", options->model, "the .onnx file")->required();
  command->add_option("--output", options->output, "where to write the package")->default_str("MODEL.foliot");
  command->add_option("--batch-sizes", options->batch_sizes, "e.g. 1,2,4")->delimiter(',')->default_str("1,2,4,8,16");
  command->add_option("--precision", options->precision, "float32 or bfloat16")
      ->default_str("float32")
      ->check(CLI::IsMember({"float32", "bfloat16"}));
  command->add_option("--threads", options->threads, "threads of one EXEC")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  command->add_option("--profile-runs", options->profile_runs, "runs of each batch size that make the first profile")
      ->default_str("5, or fewer where they take long")
      ->check(CLI::Range(1, 1000));
  command->add_flag(
      "--report", options->report,
      "list every operator with its time, layout and kernel, and the workspace against the least possible");
  command->add_option("--report-json", options->report_json, "write the report to this file");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace foliot
