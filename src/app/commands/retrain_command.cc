#include "app/commands/retrain_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "app/commands/container_launch_command.h"
#include "app/commands/flags.h"
#include "foundation/platform/processor.h"
#include "foundation/process/background.h"
#include "models/training/retrain.h"

namespace foliot {
namespace {

struct RetrainFlags {
  std::filesystem::path folder;
  std::filesystem::path state;
  RetrainOptions options;
  bool in_background = true;
};

Status run_retrain(const RetrainFlags& flags) {
  RetrainOptions options = flags.options;
  if (flags.in_background) {
    go_to_background();
    // A processor that computes slows down its neighbours, whatever its priority.
    options.threads = std::max(usable_processors(), 2u) - 1;
  }
  FOLIOT_ASSIGN_OR_RETURN(const std::string version,
                          retrain(flags.folder, flags.state, options, [](std::string_view line) {
                            fmt::print("{}\n", line);
                            std::fflush(stdout);
                          }));
  fmt::print("version {} is in {}; a server takes it unless it is worse on the validation pool\n", version,
             (flags.folder / version).string());
  return Status();
}

}  // namespace

void add_retrain_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("retrain", "Train the next version of a personal model from its observations");
  command->footer(
      "Reads the log beside the server that writes it, trains in a confined process, checks what it made and puts\n"
      "the next version into the model's folder. docs/LEARNING.md has more.\n\n"
      "  foliot retrain models/songs --state state/songs\n"
      "  foliot retrain models/songs --state state/songs --spark 'local[2]' --python .venv/bin/python");
  auto flags = std::make_shared<RetrainFlags>();
  RetrainOptions& options = flags->options;
  command->add_option("folder", flags->folder, "folder of the model, with its versions")->required();
  command->add_option("--state", flags->state, "folder of its log")->required();
  command->add_option("--trainer", options.trainer, "Python file with a class Trainer (default: ALS)");
  command->add_option("--spark", options.spark,
                      "train on Spark with this master, e.g. local[2] or spark://host:7077; needs pyspark, pyarrow and "
                      "Java, and is not confined (default: no Spark)");
  command->add_option("--python", options.python, "interpreter of the trainer, with numpy")->capture_default_str();
  command->add_option("--features", options.features, "of items (default: as many as now)");
  command->add_option("--lambda", options.lambdas, "ridges to choose from, by held out error")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--iterations", options.iterations, "of ALS")->capture_default_str()->check(CLI::Range(1, 1000));
  add_seed_flag(*command, options.seed, "of random numbers");
  add_duration_flag(*command, "time-limit", options.time_limit, "of the trainer; it is killed then");
  add_bytes_flag(*command, "memory", options.memory_bytes, "limit of the trainer's data");
  command
      ->add_option("--background", flags->in_background,
                   "train at idle priority, on all processors but one, so that a server on this machine stays quick; "
                   "false: as any other process")
      ->capture_default_str();
  command->callback([flags, &exit_code] {
    flags->options.launcher = container_launch_command();
    flags->options.package = python_package_folder();
    const Status status = run_retrain(*flags);
    if (!status.ok()) fmt::print(stderr, "foliot retrain: {}\n", status.message());
    exit_code = status.ok() ? 0 : 1;
  });
}

}  // namespace foliot
