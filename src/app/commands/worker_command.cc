#include "app/commands/worker_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "app/commands/access_flags.h"
#include "app/commands/confined_compile_command.h"
#include "app/commands/console_reporter.h"
#include "app/commands/container_launch_command.h"
#include "app/commands/flags.h"
#include "app/commands/help_formatter.h"
#include "app/commands/logger_flags.h"
#include "app/commands/observation_flags.h"
#include "app/commands/part_flags.h"
#include "app/commands/stop_signals.h"
#include "cluster/transport/link_loop.h"
#include "node/server/worker_server.h"
#include "virtual/emulation/emulated_models.h"
#include "virtual/emulation/worker_service.h"

namespace foliot {
namespace {

// A V100's page cache in Clockwork's evaluation, in its pages.
constexpr uint64_t kPageCacheBytes = 21'500'000'000;

struct WorkerFlags {
  WorkerServerOptions server;
  DeviceFlags devices;
  ObjectSourceOptions sources;
  LoggerOptions log{.part = "worker"};
  // Emulated ones:
  std::string emulate;
  uint32_t count = 1;
  uint64_t seed = 1;
};

Status run_emulated(const WorkerFlags& flags) {
  Logger log(flags.log, standard_error());
  const uint64_t page_cache_bytes = flags.server.worker.page_cache_bytes.value_or(kPageCacheBytes);
  const uint64_t page_bytes = flags.server.worker.page_bytes.value();
  WorkerServiceOptions options{.name = flags.server.name,
                               .page_count = static_cast<uint32_t>(page_cache_bytes / page_bytes),
                               .models = {},
                               .noise = {},
                               .seed = flags.seed};
  options.kind = flags.server.kind;
  FOLIOT_ASSIGN_OR_RETURN(options.models, parse_emulated_models(flags.emulate, page_bytes));
  for (ModelInfo& model : options.models) model.only().kind = options.kind;
  Status lost;
  std::function<void()> stop;
  WorkerService::Watch watch;
  watch.on_ready = [&](size_t workers) {
    if (workers == flags.count) say(log, fmt::format("ready: {} workers", workers));
  };
  watch.on_lost = [&](const Status& reason) {
    if (lost.ok()) lost = reason;
    stop();
  };
  std::function<Status()> connect;
  watch.connect = [&] { return connect(); };
  WorkerService service(std::move(options), std::move(watch));
  FOLIOT_ASSIGN_OR_RETURN(auto tls, open_link_tls(flags.server.link_tls));
  LinkLoop loop({.connection = {.role = Role::kWorker}, .tls = std::move(tls), .stop_on_signals = true}, service);
  stop = [&] { loop.stop(); };
  connect = [&] { return loop.connect(flags.server.controller); };
  for (uint32_t i = 0; i < flags.count; ++i) FOLIOT_RETURN_IF_ERROR(loop.connect(flags.server.controller));
  loop.run();
  return lost;
}

Status run_real(const WorkerFlags& flags) {
  Logger log(flags.log, standard_error());
  StopSignals signals;
  ConsoleReporter reporter(log);
  WorkerServerOptions options = flags.server;
  FOLIOT_ASSIGN_OR_RETURN(options.worker.devices, device_places(flags.devices));
  options.worker.contexts = contexts(flags.devices, "foliot", options.worker.devices);
  if (options.kind == kDefaultKind) options.kind = kind_of(options.worker.devices.front());
  options.compile_command = confined_compile_command();
  options.container_command = container_launch_command();
  options.python_package = python_package_folder();
  options.on_ready = [&](size_t count) { say(log, fmt::format("ready: {} models", count)); };
  FOLIOT_ASSIGN_OR_RETURN(
      const ObjectSources sources,
      open_object_sources(flags.sources, {options.repository, options.cache, options.watch_interval}, log,
                          [&] { return signals.arrived(); }));
  options.package_share = sources.packages;
  WorkerServer server(std::move(options), log);
  const Status status = server.start(reporter, [&] { return signals.arrived(); });
  if (signals.arrived()) return Status();
  FOLIOT_RETURN_IF_ERROR(status);
  say(log, fmt::format("listening: {}", server.description()));
  signals.wait();
  say(log, "stopping: finishing what was given");
  server.stop();
  say(log, "stopped");
  return Status();
}

Status run(const WorkerFlags& flags) {
  if (flags.emulate.empty() == flags.server.repository.empty()) {
    return Status::invalid_argument("name a REPOSITORY of models, or --emulate PROFILE");
  }
  if (!flags.emulate.empty() && flags.server.observation.any()) {
    return Status::invalid_argument("an emulated worker has no metrics and keeps no record; the controller has both");
  }
  if (!flags.emulate.empty() && !flags.server.models.empty()) {
    return Status::invalid_argument("--models chooses among those of a REPOSITORY; --emulate names its models");
  }
  return flags.emulate.empty() ? run_real(flags) : run_emulated(flags);
}

}  // namespace

void add_worker_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("worker", "Run a worker, which computes for a controller");
  command->footer(
      "Compiles the models of REPOSITORY, registers with the controller, and executes its actions. Fetches inputs\n"
      "from front ends, which connect to --data-listen, and sends them the outputs. All workers of one --kind\n"
      "bring the same models; with --watch they change them while serving, and a change takes effect when all\n"
      "workers have made it. A controller that goes away is found again, with what the pages hold. Ctrl-C finishes\n"
      "what was given and stops.\n\n"
      "  foliot worker models --watch 10s --controller a:8100 --data-listen 0.0.0.0:8200\n\n"
      "An emulated worker does what a real one does, but for the computing: LOAD and EXEC only take the time that\n"
      "a profile says. PROFILE is a profile of the built-in V100 table, several of them (resnet50:15,resnet18 is\n"
      "fifteen models and one more), v100 for the whole table, or the CSV file of a table. It shows what a\n"
      "controller can carry.\n\n"
      "  foliot worker --emulate resnet50:15 --count 150 --controller localhost:8100\n\n"
      "Without --tls-link-... there is no authentication: listen on a trusted network only.");
  auto flags = std::make_shared<WorkerFlags>();
  WorkerServerOptions& server = flags->server;
  command->add_option("repository", server.repository, "folder with a folder per model, or s3://BUCKET/PREFIX");
  command
      ->add_option("--controller", server.controller,
                   "HOST:PORT of the controller; of several, each of them, with commas between")
      ->capture_default_str();
  command->add_option("--name", server.name, "what the controller's log calls it")->capture_default_str();
  command
      ->add_option("--kind", server.kind,
                   "kind of its devices: workers of one kind run the same models in the same time")
      ->capture_default_str()
      ->check([](const std::string& name) {
        return is_kind_name(name)
                   ? std::string()
                   : fmt::format("'{}' is no kind: it takes 1 to {} letters, digits and .:_-", name, kKindBytesMax);
      });
  command->add_option("--models", server.models,
                      "only models of the repository that match, e.g. 'resnet*'; may be repeated");
  command
      ->add_option("--data-listen", server.data_listen,
                   "HOST:PORT where front ends connect; port 0 for any that is free")
      ->capture_default_str();
  command
      ->add_option("--data-address", server.data_address, "HOST:PORT by which front ends reach that, if it is another")
      ->default_str("as the controller sees it");
  add_bytes_flag(*command, "staging", server.staging_bytes, "memory for inputs that come and outputs that go",
                 "8 of the largest batches");
  add_bytes_flag(*command, "held", server.held_bytes, "memory for what stages of pipelines compute, until it is used");
  add_bytes_flag(*command, "frame-max", server.frame_bytes_max, "largest inputs or outputs of one row, on the wire");
  add_duration_flag(*command, "drain-timeout", server.drain_timeout, "how long to finish what was given when stopping");
  add_repository_flags(*command, {server.cache, server.weights_tier, server.model_defaults, flags->sources});
  add_change_flags(*command,
                   {server.watch_interval, server.compile_limits, server.compile_in_background, server.compilations});
  add_container_flags(*command, server.containers);
  server.worker.page_bytes = kPageBytesMax;
  add_worker_flags(*command, server.worker, flags->devices);
  command->get_option("--page-size")->default_str("16MiB; workers of a kind have the same");
  add_observation_flags(*command, server.observation, "--data-listen");
  add_link_tls_flags(*command, server.link_tls);
  add_logger_flags(*command, flags->log);
  const FlagGroup group(*command, "Emulation");
  command->add_option("--emulate", flags->emulate, "profiles of the models of an emulated worker")
      ->type_name("PROFILE");
  command->add_option("--count", flags->count, "emulated workers, each with a connection of its own")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  add_seed_flag(*command, flags->seed, "of the noise in emulated durations");
  command->callback([flags, &exit_code] {
    const Status status = run(*flags);
    if (!status.ok()) fmt::print(stderr, "foliot worker: {}\n", status.message());
    exit_code = status.ok() ? 0 : 1;
  });
}

}  // namespace foliot
