#include "app/commands/controller_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>

#include "app/commands/access_flags.h"
#include "app/commands/flags.h"
#include "app/commands/logger_flags.h"
#include "app/commands/observation_flags.h"
#include "app/commands/part_flags.h"
#include "app/commands/stop_signals.h"
#include "control/controller/rolling_duration_model.h"
#include "control/policies/registry.h"
#include "node/files/predictor_folder.h"
#include "node/server/controller_server.h"

namespace foliot {
namespace {

// How often it is asked whether another controller has taken over.
constexpr timespec kLookInterval{.tv_sec = 0, .tv_nsec = 50'000'000};

struct ControllerFlags {
  ControllerServerOptions server;
  std::filesystem::path overlap_predictor;
  TaskFlags tasks;
  std::filesystem::path worker_pools;
  LoggerOptions log{.part = "controller"};
};

Status run(const ControllerFlags& flags) {
  StopSignals signals;
  Logger log(flags.log, standard_error());
  ControllerServerOptions options = flags.server;
  if (!flags.overlap_predictor.empty()) {
    const auto overlap = open_predictor(flags.overlap_predictor, std::nullopt,
                                        [&log](const std::string& note) { log.write(Severity::kWarning, note); });
    options.controller.make_durations = [overlap] { return std::make_unique<RollingDurationModel>(overlap); };
  }
  if (options.policy == "overlap" && flags.overlap_predictor.empty()) {
    log.write(Severity::kWarning, "scheduler overlap without --overlap-predictor: models run one at a time");
  }
  FOLIOT_RETURN_IF_ERROR(set_tasks(flags.tasks, options.controller.tasks, options.task_scaling));
  if (!flags.worker_pools.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(options.worker_pools, read_worker_pool_file(flags.worker_pools, options.controller.tasks));
    // The program of a command `foliot` is this one, wherever it lies.
    for (auto& [kind, command] : options.worker_pools->processes.commands) {
      if (command.front() == "foliot") command.front() = std::filesystem::read_symlink("/proc/self/exe");
    }
  }
  ControllerServer server(options, log);
  FOLIOT_RETURN_IF_ERROR(server.start());
  say(log, server.description());
  while (!signals.wait_for(kLookInterval)) FOLIOT_RETURN_IF_ERROR(server.go_on());
  say(log, "stopping: finishing what runs");
  server.stop();
  say(log, "stopped");
  return Status();
}

}  // namespace

void add_controller_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("controller", "Run a controller, to which workers and front ends connect");
  command->footer(
      "Workers bring their models; clients ask for them over the same port. Ctrl-C finishes what runs, refuses the\n"
      "rest, and stops.\n\n"
      "  foliot controller --listen 0.0.0.0:8100\n"
      "  foliot worker --emulate resnet50:15 --count 10 --controller localhost:8100\n"
      "  foliot bench-controller localhost:8100 --rate 5000 --deadline 100ms\n\n"
      "Without --tls-link-... there is no authentication: listen on a trusted network only.");
  auto flags = std::make_shared<ControllerFlags>();
  ControllerServerOptions& server = flags->server;
  command->add_option("--listen", server.listen, "HOST:PORT to listen on; port 0 for any that is free")
      ->capture_default_str();
  command->add_option("--scheduler", server.policy, fmt::format("policy: {}", fmt::join(policy_names(), ", ")))
      ->capture_default_str();
  command
      ->add_option("--overlap-predictor", flags->overlap_predictor,
                   "what the scheduler overlap expects of models beside each other: a predictor of `foliot profile`")
      ->type_name("FILE")
      ->default_str("none: one at a time");
  add_target_flag(*command, server.targets);
  command
      ->add_option("--queued-max", server.controller.queued_max,
                   "requests waiting; beyond that the least urgent one is refused as overload")
      ->capture_default_str();
  add_duration_flag(*command, "deadline-margin", server.controller.timing.margin_min,
                    "plan each answer to be ready at least this long before its deadline; more where more is measured");
  add_duration_flag(*command, "fence-after", server.controller.health->fence_after,
                    "fence a worker that has sent nothing for so long");
  add_duration_flag(*command, "drain-timeout", server.drain_timeout, "how long to finish what runs when stopping");
  command
      ->add_option("--election", server.election,
                   "run beside other controllers, of which one leads: where they agree on that, "
                   "etcd://HOST:PORT[,HOST:PORT...][/KEY] (etcds:// with TLS), kubernetes://NAMESPACE/NAME of a Lease, "
                   "redis://HOST[:PORT][/DATABASE] or unix:PATH; the same for all of them")
      ->type_name("PLACE")
      ->default_str("none: it is the only controller");
  command
      ->add_option("--advertise", server.advertise,
                   "HOST:PORT by which workers and front ends reach this controller; another one for each")
      ->type_name("HOST:PORT");
  add_duration_flag(*command, "leader-timeout", server.leader_timeout,
                    "another controller takes over from one that has not renewed its record for so long");
  for (const char* of_election : {"--advertise", "--leader-timeout"}) {
    command->get_option(of_election)->needs(command->get_option("--election"));
  }
  add_tuner_flags(*command, {server.pipeline_tuner, server.plans}, "none: no pipeline is tuned");
  add_task_flags(*command, flags->tasks);
  command
      ->add_option("--worker-pools", flags->worker_pools,
                   "start and stop workers as the load demands: a TOML file of how many of each kind there may be, and "
                   "by which command or StatefulSet")
      ->type_name("FILE")
      ->default_str("none: others start them");
  add_observation_flags(*command, server.observation, "--listen");
  add_tracing_flags(*command, server.observation.tracing);
  add_link_tls_flags(*command, server.tls);
  add_logger_flags(*command, flags->log);
  command->callback([flags, &exit_code] {
    const Status status = run(*flags);
    if (!status.ok()) fmt::print(stderr, "foliot controller: {}\n", status.message());
    exit_code = status.ok() ? 0 : 1;
  });
}

}  // namespace foliot
