#include "app/commands/serve_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/access_flags.h"
#include "app/commands/confined_compile_command.h"
#include "app/commands/console_reporter.h"
#include "app/commands/container_launch_command.h"
#include "app/commands/exit_code.h"
#include "app/commands/flags.h"
#include "app/commands/help_formatter.h"
#include "app/commands/logger_flags.h"
#include "app/commands/mlserver_environment.h"
#include "app/commands/part_flags.h"
#include "app/commands/stop_signals.h"
#include "control/policies/registry.h"
#include "foundation/config/repository_path.h"
#include "node/server/server.h"

namespace foliot {
namespace {

int fail(const Status& status, int exit_code = kExitFailed) {
  fmt::print(stderr, "foliot serve: {}\n", status.message());
  return exit_code;
}

struct ServeFlags {
  ServerOptions server;
  DeviceFlags devices;
  ObjectSourceOptions sources;
  AccessFiles access;
  TaskFlags tasks;
  LoggerOptions log{.part = "serve"};
  std::string model_name;                     // empty: as it is found
  std::vector<std::string> environment_said;  // lines for the log
};

// The model that the repository is, if it is one alone.
Result<std::optional<std::filesystem::path>> find_named_model(const ServeFlags& flags, ServerOptions& options) {
  FOLIOT_ASSIGN_OR_RETURN(auto lone, find_lone_model(options.repository));
  if (flags.model_name.empty()) return lone;
  if (lone) {
    options.model_defaults.name = flags.model_name;
    return lone;
  }
  return Status::invalid_argument(fmt::format(
      "the model name '{}' is for a model alone, and '{}' has no model.onnx or model.py; give the folder of the model, "
      "or no --model-name and no MLSERVER_MODEL_NAME",
      flags.model_name, options.repository.string()));
}

int serve(const ServeFlags& flags) {
  Logger log(flags.log, standard_error());
  ServerOptions options = flags.server;
  for (const std::string& line : flags.environment_said) say(log, line);
  // Before a driver of a GPU, or a mirror, starts threads.
  StopSignals signals;
  const auto sources = open_object_sources(flags.sources, {options.repository, options.cache, options.watch_interval},
                                           log, [&] { return signals.arrived(); });
  if (signals.arrived()) return 0;
  if (!sources.ok()) return fail(sources.status(), kExitNothingToServe);
  options.package_share = sources.value().packages;
  const auto lone = find_named_model(flags, options);
  if (!lone.ok()) return fail(lone.status(), kExitNothingToServe);
  options.frontend.log_levels = log_levels(flags.log);
  if (const Status status = open_access(flags.access, log, options.frontend); !status.ok()) return fail(status);
  Result<DevicePlaces> places = device_places(flags.devices);
  if (!places.ok()) return fail(places.status(), kExitUsage);
  options.worker.devices = std::move(places).value();
  options.worker.contexts = contexts(flags.devices, options.scheduler, options.worker.devices);
  if (const Status status = set_tasks(flags.tasks, options.controller.tasks, options.task_scaling); !status.ok()) {
    return fail(status);
  }
  options.compile_command = confined_compile_command();
  options.container_command = container_launch_command();
  options.python_package = python_package_folder();
  options.on_replica = [&log](Severity level, const std::string& line) { log.write(level, line); };
  options.on_failure = [&log](const std::string& line) { log.write(Severity::kError, line); };
  options.on_tuning = options.on_replica;
  options.on_retraining = [&log](bool is_failure, const std::string& line) {
    log.write(is_failure ? Severity::kError : Severity::kInfo, line);
  };
  options.on_note = [&log](const std::string& line) { log.write(Severity::kWarning, "note: " + line); };
  ConsoleReporter reporter(log, lone->has_value());
  Server server(options);
  const Status status = server.start(reporter, [&] { return signals.arrived(); });
  if (signals.arrived()) return 0;
  if (!status.ok()) return fail(status, status.code() == StatusCode::kNotFound ? kExitNothingToServe : kExitFailed);
  if (lone->has_value() && !reporter.failure().ok()) {
    server.stop();
    return fail(reporter.failure(), kExitNothingToServe);
  }
  say(log, server.description());
  FileWatch watch(reloads(flags.access, server.frontend(), log));
  if (const Status watching = watch.start(kReloadInterval); !watching.ok()) return fail(watching);
  signals.wait();
  say(log, "stopping: answering what is in flight");
  server.stop();
  say(log, "stopped");
  return 0;
}

void add_registration_flags(CLI::App& app, VariantProcessOptions& options) {
  const FlagGroup group(app, "Jobs");
  app.add_option("--variants-python", options.python,
                 "interpreter with numpy, onnx and onnxruntime, which makes the variants of registrations")
      ->type_name("PROGRAM")
      ->capture_default_str();
  add_bytes_flag(app, "variants-memory", options.memory_bytes, "memory that it may take");
}

void add_scheduling_flags(CLI::App& app, ServerOptions& options) {
  const FlagGroup group(app, "Scheduling");
  app.add_option("--scheduler", options.scheduler, fmt::format("policy: {}", fmt::join(policy_names(), ", ")))
      ->capture_default_str();
  add_target_flag(app, options.targets);
  add_duration_flag(app, "deadline-margin", options.controller.timing.margin_min,
                    "plan each answer to be ready at least this long before its deadline; more where more is measured");
  add_duration_flag(app, "drain-timeout", options.drain_timeout, "how long to answer what is in flight when stopping");
}

}  // namespace

void add_serve_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("serve", "Serve a model, or a repository of models, over HTTP and gRPC");
  command->footer(
      "REPOSITORY is a .onnx file, a folder with a model.onnx or model.py in it, or a folder with a folder per\n"
      "model: NAME/model.onnx or NAME/VERSION/model.onnx, and optionally NAME/model.toml (default_slo,\n"
      "batch_sizes, [buckets]). One model alone is named after its file or folder, or by --model-name. Where nothing "
      "is\n"
      "given, MLSERVER_MODEL_URI, MLSERVER_MODEL_NAME, MLSERVER_HTTP_PORT and MLSERVER_GRPC_PORT of the environment "
      "are\n"
      "heeded, as KServe sets them for MLServer. What is not compiled yet is\n"
      "compiled first, once. A request's deadline is the tightest of its `timeout` parameter (us), its\n"
      "gRPC deadline and the default SLO. Ctrl-C answers what is in flight and stops.\n\n"
      "  foliot serve resnet50.onnx\n"
      "  foliot serve models --default-slo 50ms --page-cache 2GiB\n"
      "  curl localhost:8000/v2/health/ready");
  auto flags = std::make_shared<ServeFlags>();
  ServerOptions* const options = &flags->server;
  command
      ->add_option("repository", options->repository,
                   "a model, or a folder with a folder per model, or s3://BUCKET/PREFIX")
      ->default_str("MLSERVER_MODEL_URI of the environment");
  command->add_option("--model-name", flags->model_name, "name of a model alone whose settings give it none")
      ->type_name("NAME")
      ->default_str("that of its file or folder");
  add_repository_flags(*command, {options->cache, options->weights_tier, options->model_defaults, flags->sources});
  add_state_flag(*command, options->state);
  command->add_option("--observations", options->observations, "folder in which personal models keep observations")
      ->type_name("FOLDER")
      ->default_str("REPOSITORY/.observations");
  command->add_option("--personal-threads", options->personal_threads, "threads for predictions of personal models")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  add_frontend_flags(*command, options->frontend);
  add_access_flags(*command, flags->access, options->frontend);
  add_worker_flags(*command, options->worker, flags->devices);
  add_scheduling_flags(*command, *options);
  add_tuner_flags(*command, {options->pipeline_tuner, options->plans}, "REPOSITORY");
  add_task_flags(*command, flags->tasks);
  add_job_flags(*command, options->jobs);
  add_registration_flags(*command, options->jobs.variants);
  add_container_flags(*command, options->containers);
  add_change_flags(*command, {options->watch_interval, options->compile_limits, options->compile_in_background,
                              options->compilations});
  add_log_flags(*command, options->log);
  add_tracing_flags(*command, options->tracing);
  add_logger_flags(*command, flags->log);
  set_rarely_set(*command, {"--personal-threads",
                            "--weights-tier",
                            "--grpc-threads",
                            "--strict-readiness",
                            "--metrics-address",
                            "--admin-address",
                            "--bodies-max",
                            "--tensors-max",
                            "--tensor-rank-max",
                            "--tensor-max",
                            "--connections-max",
                            "--idle-timeout",
                            "--request-timeout",
                            "--requests-in-flight-max",
                            "--threads",
                            "--contexts",
                            "--page-size",
                            "--io-cache",
                            "--workspace",
                            "--models-max",
                            "--deadline-margin",
                            "--drain-timeout",
                            "--variant-policy",
                            "--task-scaling",
                            "--jobs-running",
                            "--jobs-bytes-per-key",
                            "--variants-python",
                            "--variants-memory",
                            "--compile-memory",
                            "--compile-time",
                            "--compile-in-background",
                            "--compilations",
                            "--containers",
                            "--containers-kernel",
                            "--log-max",
                            "--otlp",
                            "--otlp-share"});
  command->callback([flags, command, &exit_code] {
    auto said = heed_mlserver_environment(
        *command, {flags->server.repository, flags->model_name, flags->server.frontend.http_port,
                   flags->server.frontend.grpc_port, flags->server.model_defaults.runtime});
    if (!said.ok()) {
      exit_code = fail(said.status());
      return;
    }
    if (flags->server.repository.empty()) throw CLI::RequiredError("repository");
    flags->environment_said = *std::move(said);
    exit_code = serve(*flags);
  });
}

}  // namespace foliot
