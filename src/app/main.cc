// foliot: one binary, a command each.
#include <absl/synchronization/mutex.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "app/commands/bench_command.h"
#include "app/commands/bench_controller_command.h"
#include "app/commands/compile_command.h"
#include "app/commands/completion_command.h"
#include "app/commands/confined_compile_command.h"
#include "app/commands/container_command.h"
#include "app/commands/container_launch_command.h"
#include "app/commands/controller_command.h"
#include "app/commands/demo_command.h"
#include "app/commands/devices_command.h"
#include "app/commands/exit_code.h"
#include "app/commands/experiment_command.h"
#include "app/commands/explain_command.h"
#include "app/commands/flags.h"
#include "app/commands/frontend_command.h"
#include "app/commands/help_formatter.h"
#include "app/commands/import_command.h"
#include "app/commands/infer_command.h"
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
#include "app/commands/top_command.h"
#include "app/commands/trace_command.h"
#include "app/commands/usage_error.h"
#include "app/commands/variants_command.h"
#include "app/commands/versions_command.h"
#include "app/commands/worker_command.h"
#include "app/silent_libraries.h"
#include "app/startup_environment.h"
#include "app/version.h"
#include "engine/container/container_launch.h"
#include "engine/program/mapped_copy.h"
#include "foundation/base/heap.h"
#include "foundation/base/memory_lock.h"
#include "foundation/platform/open_files.h"
#include "foundation/process/periodic_yield.h"

int main(int argc, char** argv) {
  // What holds for the whole process is set here, before there are threads
  // (docs/OPERATIONS.md#what-holds-for-the-whole-process).
  if (foliot::is_container_launch(argc, argv)) return foliot::launch_container();
  foliot::set_startup_environment(argc, argv);
  foliot::silence_libraries();
  foliot::keep_heap_memory();
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  foliot::handle_yield_signal();
  foliot::handle_bus_errors();
  if (foliot::is_confined_compile(argc, argv)) return foliot::confined_compile(argc, argv);
  CLI::App app("Foliot serves deep-learning models under deadlines: an answer in time, or a refusal at once.",
               "foliot");
  app.formatter(std::make_shared<foliot::HelpFormatter>());
  app.set_version_flag("--version", foliot::version_text());
  app.require_subcommand(1);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  foliot::reserve_open_files(foliot::raise_open_files_limit());
  foliot::raise_locked_memory_limit();
  int exit_code = 0;
  using Add = void (*)(CLI::App&, int&);
  const auto add = [&](const char* group, std::initializer_list<Add> commands) {
    for (const Add command : commands) {
      command(app, exit_code);
      app.get_subcommands({}).back()->group(group);
    }
  };
  add("Serve", {foliot::add_serve_command, foliot::add_demo_command, foliot::add_init_command,
                foliot::add_import_command, foliot::add_models_command, foliot::add_container_command,
                foliot::add_keys_command, foliot::add_devices_command});
  add("Serve with several machines",
      {foliot::add_controller_command, foliot::add_worker_command, foliot::add_frontend_command});
  add("Ask", {foliot::add_infer_command, foliot::add_run_command, foliot::add_jobs_command, foliot::add_top_command});
  add("Measure", {foliot::add_bench_command, foliot::add_bench_controller_command, foliot::add_compile_command,
                  foliot::add_profile_command});
  add("Look back", {foliot::add_explain_command, foliot::add_trace_command, foliot::add_replay_command});
  add("Plan and learn", {foliot::add_plan_command, foliot::add_variants_command, foliot::add_retrain_command,
                         foliot::add_versions_command});
  add("Research", {foliot::add_simulate_command, foliot::add_experiment_command});
  add("Other", {foliot::add_completion_command});
  // Set last: a command inherits it otherwise.
  app.footer(
      "The first five minutes:\n"
      "  foliot serve model.onnx        # or a folder of models: models/NAME/model.onnx, ...\n"
      "  foliot bench --model NAME --rate 100 --deadline 50ms\n\n"
      "`foliot help COMMAND` has the flags. Each can also stand in a TOML file, under the same name,\n"
      "given with --config FILE.");
  if (argc == 1) {
    fmt::print("{}", app.help());
    return 0;
  }
  try {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.front() == "help") {  // of the command behind it, if there is one of this name
      arguments.erase(arguments.begin());
      const auto is_meant = [&](const CLI::App* command) { return command->get_name() == arguments.front(); };
      if (arguments.empty() || !app.get_subcommands(is_meant).empty()) arguments.emplace_back("--help");
    }
    arguments = foliot::expand_config_file(app, std::move(arguments));
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    fmt::print(stderr, "{}\n", foliot::usage_error(app, error));
    return foliot::kExitUsage;
  }
  return exit_code;
}
