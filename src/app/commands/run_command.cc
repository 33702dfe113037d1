#include "app/commands/run_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "app/commands/part_flags.h"
#include "app/commands/progress_bar.h"
#include "edge/jobs/npy_file.h"
#include "engine/compiler/compiler.h"
#include "engine/compiler/program_runner.h"
#include "engine/device/cpu/cpu_device.h"
#include "engine/program/package.h"
#include "foundation/base/units.h"
#include "models/repository/model_config.h"

namespace foliot {
namespace {

constexpr const char* kRunFooter =
    R"(Inputs and outputs are NumPy arrays (.npy). The first dimension of every input counts rows, which run in batches of
the largest size that was compiled and divides them, or of --batch. A model.toml beside the model is heeded.

  foliot run models/resnet50/model.onnx --input input=pixels.npy --output answers
  foliot run resnet50.foliot --input input=pixels.npy --output answers --batch 4)";

struct RunCommandOptions {
  std::filesystem::path model;
  std::vector<std::string> inputs;
  std::filesystem::path output;
  uint32_t batch = 0;               // 0: choose
  std::optional<uint32_t> threads;  // nullopt: as many as the package was compiled for
  bool check_ranges = false;
};

using Arrays = std::map<std::string, NpyArray>;

// Where a plan is cut in two, as shares of its operators.
constexpr double kCuts[] = {0.0, 0.2, 0.4, 0.6, 0.8, 1.0};

class RunCommand {
 public:
  explicit RunCommand(const RunCommandOptions& options) : options_(options) {}

  Status run() {
    FOLIOT_RETURN_IF_ERROR(read_inputs());
    FOLIOT_RETURN_IF_ERROR(open_program());
    for (const std::string& note : program().notes) fmt::print(stderr, "warning: {}\n", note);
    FOLIOT_RETURN_IF_ERROR(count_rows());
    FOLIOT_RETURN_IF_ERROR(choose_plan());
    device_ = make_cpu_device({.threads = threads()});
    FOLIOT_ASSIGN_OR_RETURN(runner_, ProgramRunner::create(*device_, *package_.program, package_.weights));
    FOLIOT_RETURN_IF_ERROR(run_batches());
    FOLIOT_RETURN_IF_ERROR(write_outputs());
    return check_refused();
  }

 private:
  const Program& program() const { return *package_.program; }
  const Plan& plan() const { return program().plans[plan_]; }
  uint32_t threads() const {
    if (options_.threads) return *options_.threads;
    return package_.program ? threads_of(program().device_fingerprint).value_or(1) : default_threads();
  }

  Status read_inputs() {
    for (const std::string& text : options_.inputs) {
      const size_t equals = text.find('=');
      if (equals == std::string::npos) {
        return Status::invalid_argument(fmt::format("--input '{}': write NAME=FILE.npy", text));
      }
      FOLIOT_ASSIGN_OR_RETURN(inputs_[text.substr(0, equals)], read_npy(text.substr(equals + 1)));
    }
    return {};
  }

  Status open_program() {
    if (options_.model.extension() == ".foliot") {
      FOLIOT_ASSIGN_OR_RETURN(package_, open_package(options_.model, WeightsTier::kMemory));
      return {};
    }
    return compile_model();
  }

  Status compile_model();
  Status count_rows();
  Status choose_plan();
  Result<size_t> find_bucket() const;
  Status run_batches();
  // Keeps its rows that were refused, which have outputs of zeros.
  void note_refused(size_t batch);
  Status check_refused() const;
  Status check_ranges(const std::vector<std::byte>& input, const std::vector<std::byte>& expected);
  std::vector<std::byte> gather_input(size_t batch) const;
  void scatter_output(size_t batch, const std::vector<std::byte>& block);
  Status write_outputs() const;

  const RunCommandOptions& options_;
  Arrays inputs_;
  Arrays outputs_;
  Package package_;
  uint64_t rows_ = 1;
  std::vector<size_t> refused_;
  size_t plan_ = 0;
  std::unique_ptr<CpuDevice> device_;
  std::unique_ptr<ProgramRunner> runner_;
};

// Weights of a program that was compiled just now.
class OwnedWeights final : public WeightsSource {
 public:
  explicit OwnedWeights(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  uint64_t bytes() const override { return bytes_.size(); }
  Status read(uint64_t offset, std::span<std::byte> to) override {
    std::memcpy(to.data(), bytes_.data() + offset, to.size());
    return {};
  }

 private:
  const std::vector<std::byte> bytes_;
};

Status RunCommand::compile_model() {
  FOLIOT_ASSIGN_OR_RETURN(const ModelConfig config,
                          read_model_config(options_.model.parent_path() / "model.toml", ModelConfig()));
  CompileOptions options = config.compile;
  options.profile_runs = 1;
  if (options_.batch > 0) options.batch_sizes = {options_.batch};
  const auto device = make_cpu_device({.threads = threads()});
  ProgressBar bar;
  Result<CompiledProgram> compiled =
      compile(options_.model, options, *device,
              [&](std::string_view step, double share) { bar.show(options_.model.string(), step, share); });
  bar.clear();
  if (!compiled.ok()) return compiled.status();
  package_.program = std::make_shared<Program>(std::move(compiled->program));
  package_.weights = std::make_shared<OwnedWeights>(std::move(compiled->weights));
  return {};
}

// Every input is there, of the right type and rank, and all have as many rows.
Status RunCommand::count_rows() {
  const size_t batch_dimensions = program().batching ? 1 : 0;
  for (const TensorSpec& spec : program().inputs) {
    const auto found = inputs_.find(spec.name);
    if (found == inputs_.end())
      return Status::invalid_argument(fmt::format("--input {}=FILE.npy is missing", spec.name));
    const NpyArray& array = found->second;
    if (array.type != spec.type || array.shape.size() != spec.shape.size() + batch_dimensions) {
      return Status::invalid_argument(fmt::format(
          "input '{}' must be {} {} {}, not {} {}", spec.name, to_string(spec.type), to_string(spec.shape),
          program().batching ? "for each row" : "as a whole", to_string(array.type), to_string(array.shape)));
    }
  }
  for (const auto& [name, array] : inputs_) {
    if (std::ranges::find(program().inputs, name, &TensorSpec::name) == program().inputs.end()) {
      return Status::invalid_argument(fmt::format("the model has no input '{}'", name));
    }
    if (!program().batching) continue;
    const auto rows = static_cast<uint64_t>(array.shape.front());
    if (rows == 0) return Status::invalid_argument(fmt::format("input '{}' has no rows", name));
    if (&array != &inputs_.begin()->second && rows != rows_) {
      return Status::invalid_argument(fmt::format("input '{}' has {} rows, another has {}", name, rows, rows_));
    }
    rows_ = rows;
  }
  return {};
}

// The bucket whose dimensions are those of the inputs.
Result<size_t> RunCommand::find_bucket() const {
  const size_t skipped = program().batching ? 1 : 0;
  for (size_t bucket = 0; bucket < program().buckets.size(); ++bucket) {
    const bool fits = std::ranges::all_of(program().inputs, [&](const TensorSpec& spec) {
      for (size_t i = 0; i < spec.shape.size(); ++i) {
        const int64_t extent =
            spec.shape[i] < 0 ? program().buckets[bucket].dimensions.at(spec.dimension_names[i]) : spec.shape[i];
        if (inputs_.at(spec.name).shape[i + skipped] != extent) return false;
      }
      return true;
    });
    if (fits) return bucket;
  }
  std::string wanted;
  for (const TensorSpec& spec : program().inputs) wanted += fmt::format(" {} {}", spec.name, to_string(spec.shape));
  std::string buckets;
  for (const ProgramBucket& bucket : program().buckets) {
    for (const auto& [name, size] : bucket.dimensions) buckets += fmt::format(" {}={}", name, size);
  }
  return Status::invalid_argument(fmt::format("no compiled shape fits the inputs; a row is{}{}{}", wanted,
                                              buckets.empty() ? "" : ", and -1 one of", buckets));
}

Status RunCommand::choose_plan() {
  FOLIOT_ASSIGN_OR_RETURN(const size_t bucket, find_bucket());
  const std::vector<uint32_t>& sizes = program().batch_sizes;
  const auto suits = [&](uint32_t size) { return options_.batch == 0 ? rows_ % size == 0 : size == options_.batch; };
  const auto found = std::ranges::find_if(sizes.rbegin(), sizes.rend(), suits);
  if (found == sizes.rend() || rows_ % *found != 0) {
    return Status::invalid_argument(fmt::format("{} rows cannot run in batches of {}; compiled are {}", rows_,
                                                options_.batch == 0 ? "any size" : fmt::format("{}", options_.batch),
                                                fmt::join(sizes, ", ")));
  }
  plan_ = bucket * sizes.size() + static_cast<size_t>(sizes.rend() - found - 1);
  return {};
}

std::vector<std::byte> RunCommand::gather_input(size_t batch) const {
  std::vector<std::byte> block(plan().input_bytes);
  for (size_t i = 0; i < plan().inputs.size(); ++i) {
    const Tensor& tensor = plan().tensors[plan().inputs[i]];
    const std::vector<std::byte>& bytes = inputs_.at(program().inputs[i].name).bytes;
    std::memcpy(block.data() + tensor.offset, bytes.data() + batch * tensor.bytes, tensor.bytes);
  }
  return block;
}

void RunCommand::scatter_output(size_t batch, const std::vector<std::byte>& block) {
  for (size_t i = 0; i < plan().outputs.size(); ++i) {
    const Tensor& tensor = plan().tensors[plan().outputs[i]];
    NpyArray& array = outputs_[program().outputs[i].name];
    if (batch == 0) {
      array = {.type = tensor.type, .shape = tensor.shape, .bytes = {}};
      if (program().batching) array.shape.front() = static_cast<int64_t>(rows_);
      array.bytes.resize(byte_size(array.type, array.shape));
    }
    std::memcpy(array.bytes.data() + batch * tensor.bytes, block.data() + tensor.offset, tensor.bytes);
  }
}

Status RunCommand::run_batches() {
  const size_t batches = rows_ / plan().batch_size;
  std::vector<Duration> durations;
  for (size_t i = 0; i < batches; ++i) {
    const std::vector<std::byte> input = gather_input(i);
    std::vector<std::byte> output(plan().output_bytes);
    FOLIOT_ASSIGN_OR_RETURN(const Duration duration, runner_->run(plan_, input, output));
    durations.push_back(duration);
    note_refused(i);
    scatter_output(i, output);
    if (options_.check_ranges && i == 0) FOLIOT_RETURN_IF_ERROR(check_ranges(input, output));
  }
  std::ranges::sort(durations);
  fmt::print("{} rows in batches of {}: EXEC {} (median of {})\n", rows_, plan().batch_size,
             format_duration(durations[durations.size() / 2]), durations.size());
  return {};
}

void RunCommand::note_refused(size_t batch) {
  for (size_t row = 0; row < plan().batch_size; ++row)
    if (runner_->failed_rows()[row]) refused_.push_back(batch * plan().batch_size + row);
}

Status RunCommand::check_refused() const {
  if (refused_.empty()) return {};
  constexpr size_t kNamedMax = 100;
  const std::span named = std::span(refused_).first(std::min(refused_.size(), kNamedMax));
  return Status::invalid_argument(fmt::format(
      "the model refuses {} of {} rows, whose outputs are zeros: {}{}. They hold an index out of range, a NaN that a "
      "convolution would lose, or an image that is none; a server answers such a row with 400",
      refused_.size(), rows_, fmt::join(named, ", "), named.size() < refused_.size() ? ", ..." : ""));
}

// Runs the plan in two parts, cut at several places, and compares every bit. In
// between another input passes, so that what it left cannot stand in for a result.
Status RunCommand::check_ranges(const std::vector<std::byte>& input, const std::vector<std::byte>& expected) {
  std::vector<std::byte> output(expected.size());
  for (const double share : kCuts) {
    const auto cut = static_cast<uint32_t>(share * static_cast<double>(plan().operators.size()));
    FOLIOT_RETURN_IF_ERROR(runner_->run(plan_, std::vector<std::byte>(input.size()), output).status());
    runner_->put_input(input);
    FOLIOT_RETURN_IF_ERROR(runner_->run_range(plan_, {.first = 0, .last = cut}).status());
    FOLIOT_RETURN_IF_ERROR(runner_->run_range(plan_, {.first = cut}).status());
    runner_->get_output(output);
    if (output == expected) continue;
    return Status::internal(fmt::format("cut before operator {} of {}, the plan gives another output than as a whole",
                                        cut, plan().operators.size()));
  }
  return {};
}

Status RunCommand::write_outputs() const {
  if (options_.output.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(options_.output, error);
  for (const auto& [name, array] : outputs_) {
    std::string file = name;
    std::ranges::replace(file, '/', '_');
    FOLIOT_RETURN_IF_ERROR(write_npy(options_.output / (file + ".npy"), array));
  }
  return {};
}

}  // namespace

void add_run_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("run", "Run a model once on arrays in files");
  command->footer(kRunFooter);
  auto options = std::make_shared<RunCommandOptions>();
  command->add_option("model", options->model, "an .onnx file, or a package that `foliot compile` made")->required();
  command->add_option("--input", options->inputs, "NAME=FILE.npy; once for each input")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--output", options->output, "folder for the outputs, a NAME.npy each");
  command->add_option("--batch", options->batch, "rows that run together")
      ->default_str("the largest that divides the rows")
      ->check(CLI::PositiveNumber);
  command->add_option("--threads", options->threads, "threads of one EXEC; a package must be made for as many")
      ->default_str(fmt::format("{}; of a package, those that it was made for", default_threads()))
      ->check(CLI::Range(1, 1024));
  command->add_flag("--check-ranges", options->check_ranges,
                    "also run the plan in two parts, cut at several places, and compare every bit");
  command->callback([options, &exit_code] {
    const Status status = RunCommand(*options).run();
    if (!status.ok()) fmt::print(stderr, "foliot run: {}\n", status.message());
    exit_code = status.ok() ? 0 : 1;
  });
}

}  // namespace foliot
