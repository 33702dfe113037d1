// foliot: one binary, a command each.
#include <absl/synchronization/mutex.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "app/commands/bench_command.h"
#include "app/commands/bench_controller_command.h"
#include "app/commands/compile_command.h"
#include "app/commands/confined_compile_command.h"
#include "app/commands/container_command.h"
#include "app/commands/container_launch_command.h"
#include "app/commands/controller_command.h"
#include "app/commands/devices_command.h"
#include "app/commands/experiment_command.h"
#include "app/commands/explain_command.h"
#include "app/commands/flags.h"
#include "app/commands/frontend_command.h"
#include "app/commands/help_formatter.h"
#include "app/commands/init_command.h"
#include "app/commands/jobs_command.h"
#include "app/commands/keys_command.h"
#include "app/commands/models_command.h"
#include "app/commands/plan_command.h"
#include "app/commands/profile_command.h"
#include "app/commands/replay_command.h"
#include "app/commands/retrain_command.h"
#include "app/commands/run_command.h"
#include "app/commands/serve_command.h"
#include "app/commands/simulate_command.h"
#include "app/commands/trace_command.h"
#include "app/commands/variants_command.h"
#include "app/commands/worker_command.h"
#include "app/startup_environment.h"
#include "base/heap.h"
#include "base/memory_lock.h"
#include "container/container_launch.h"
#include "platform/open_files.h"
#include "process/periodic_yield.h"
#include "program/mapped_copy.h"

int main(int argc, char** argv) {
  // What holds for the whole process is set here, before there are threads
  // (docs/OPERATIONS.md#what-holds-for-the-whole-process).
  if (foliot::is_container_launch(argc, argv)) return foliot::launch_container();
  foliot::set_startup_environment(argc, argv);
  foliot::keep_heap_memory();
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  foliot::handle_yield_signal();
  foliot::handle_bus_errors();
  if (foliot::is_confined_compile(argc, argv)) return foliot::confined_compile(argc, argv);
  CLI::App app("Foliot serves deep-learning models under deadlines: an answer in time, or a refusal at once.",
               "foliot");
  app.formatter(std::make_shared<foliot::HelpFormatter>());
  app.set_version_flag("--version", FOLIOT_VERSION);
  app.require_subcommand(1);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  foliot::raise_open_files_limit();
  foliot::raise_locked_memory_limit();
  int exit_code = 0;
  foliot::add_serve_command(app, exit_code);
  foliot::add_init_command(app, exit_code);
  foliot::add_compile_command(app, exit_code);
  foliot::add_run_command(app, exit_code);
  foliot::add_models_command(app, exit_code);
  foliot::add_variants_command(app, exit_code);
  foliot::add_container_command(app, exit_code);
  foliot::add_devices_command(app, exit_code);
  foliot::add_retrain_command(app, exit_code);
  foliot::add_jobs_command(app, exit_code);
  foliot::add_keys_command(app, exit_code);
  foliot::add_bench_command(app, exit_code);
  foliot::add_simulate_command(app, exit_code);
  foliot::add_experiment_command(app, exit_code);
  foliot::add_plan_command(app, exit_code);
  foliot::add_profile_command(app, exit_code);
  foliot::add_explain_command(app, exit_code);
  foliot::add_replay_command(app, exit_code);
  foliot::add_trace_command(app, exit_code);
  foliot::add_controller_command(app, exit_code);
  foliot::add_worker_command(app, exit_code);
  foliot::add_frontend_command(app, exit_code);
  foliot::add_bench_controller_command(app, exit_code);
  // Set last: a command inherits it otherwise.
  app.footer(
      "The first five minutes:\n"
      "  foliot serve models            # models/NAME/model.onnx, ...\n"
      "  foliot bench --model NAME --rate 100 --deadline 50ms\n\n"
      "`foliot COMMAND --help` has the flags. Each can also stand in a TOML file, under the same name,\n"
      "given with --config FILE.");
  if (argc == 1) {
    fmt::print("{}", app.help());
    return 0;
  }
  try {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    arguments = foliot::expand_config_file(app, std::move(arguments));
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return exit_code;
}
