#include "app/commands/container_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/commands/container_launch_command.h"
#include "app/commands/part_flags.h"
#include "engine/container/container_engine.h"
#include "engine/container/container_process.h"
#include "engine/container/container_profile.h"
#include "foundation/base/units.h"
#include "foundation/core/tensor.h"
#include "foundation/platform/clock.h"
#include "models/repository/model_folder.h"
#include "node/repository/container_model.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

// The model of this folder, which may be that of a version, too.
Result<ModelFolder> find_container(fs::path path) {
  std::error_code error;
  path = fs::weakly_canonical(path, error);
  if (!fs::is_directory(path, error)) {
    return Status::not_found(fmt::format("there is no folder {}; give that of a model: NAME/model.py", path.string()));
  }
  const std::string name = path.filename().string();
  if (std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; })) path = path.parent_path();
  FOLIOT_ASSIGN_OR_RETURN(const auto models, scan_repository(path.parent_path(), ModelConfig()));
  const auto found = std::ranges::find(models, path, &ModelFolder::folder);
  if (found == models.end()) return Status::not_found(fmt::format("{} cannot be read", path.string()));
  FOLIOT_RETURN_IF_ERROR(found->status);
  if (found->is_container()) return *found;
  return Status::invalid_argument(
      fmt::format("{} is no container, which has a model.py; see foliot models", found->model.string()));
}

void print_tensors(std::string_view what, const std::vector<TensorSpec>& tensors) {
  for (const TensorSpec& tensor : tensors) {
    std::string bound;
    if (tensor.type == DataType::kBytes) bound = fmt::format(" of up to {} bytes", tensor.bound->string_bytes);
    if (std::ranges::count(tensor.shape, -1) > 0) bound += fmt::format(", at most {}", to_string(tensor.bound->shape));
    fmt::print("{:<9} {:<20} {} {}{}\n", what, tensor.name, to_string(tensor.type), to_string(tensor.shape), bound);
  }
}

Status check(const fs::path& path, const ContainerSafety& safety) {
  FOLIOT_ASSIGN_OR_RETURN(const ModelFolder model, find_container(path));
  FOLIOT_ASSIGN_OR_RETURN(const ContainerOptions options,
                          container_options(model, container_launch_command(), python_package_folder(), safety));
  fmt::print("model     {}, version {}, {}\n", model.name, model.version, model.model.string());
  std::fflush(stdout);
  const TimePoint began = monotonic_now();
  FOLIOT_ASSIGN_OR_RETURN(
      const std::unique_ptr<ContainerProcess> process,
      ContainerProcess::start(options, [](std::string_view line) { fmt::print("          {}\n", line); }));
  const ContainerDescription& description = process->description();
  fmt::print("started   in {}\n", format_duration(monotonic_now() - began));
  print_tensors("input", description.inputs);
  print_tensors("output", description.outputs);
  FOLIOT_RETURN_IF_ERROR(process->share_memory(container_memory_bytes(description, 1)));
  const std::vector<uint32_t> batch_sizes = container_batch_sizes(description);
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<Duration> durations, profile(*process, batch_sizes));
  for (size_t i = 0; i < batch_sizes.size(); ++i) {
    fmt::print("batch of  {:<4} {:>10}  {:.0f} rows/s\n", batch_sizes[i], format_duration(durations[i]),
               batch_sizes[i] / durations[i].to_seconds());
  }
  return Status();
}

}  // namespace

void add_container_command(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("container", "Check a model that is a container: user code in its own process");
  command->require_subcommand(1);
  CLI::App* checking = command->add_subcommand("check", "Start it once, call it with zeros, and say what is wrong");
  checking->footer(
      "Starts the process as a server does, confined and with the same environment, and calls it with batches of\n"
      "zeros of every size. What it prints is shown. The exit code is 1 if it cannot be served.\n\n"
      "  foliot container check models/digits");
  auto folder = std::make_shared<fs::path>();
  auto safety = std::make_shared<ContainerSafety>();
  checking->add_option("folder", *folder, "folder of the model, or of a version of it")->required();
  add_container_flags(*checking, *safety);
  checking->callback([folder, safety, &exit_code] {
    const Status status = check(*folder, *safety);
    if (!status.ok()) fmt::print(stderr, "foliot container check: {}\n", status.message());
    exit_code = status.ok() ? 0 : 1;
  });
}

}  // namespace foliot
