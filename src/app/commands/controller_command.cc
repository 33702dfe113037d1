#include "app/commands/controller_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "app/commands/access_flags.h"
#include "app/commands/flags.h"
#include "app/commands/logger_flags.h"
#include "app/commands/observation_flags.h"
#include "app/commands/stop_signals.h"
#include "policies/registry.h"
#include "serving/controller_server.h"

namespace foliot {
namespace {

struct ControllerFlags {
  ControllerServerOptions server;
  LoggerOptions log{.part = "controller"};
};

Status run(const ControllerFlags& flags) {
  StopSignals signals;
  Logger log(flags.log, standard_error());
  ControllerServer server(flags.server, log);
  FOLIOT_RETURN_IF_ERROR(server.start());
  say(log, server.description());
  signals.wait();
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
      ->add_option("--queued-max", server.controller.queued_max,
                   "requests waiting; beyond that the least urgent one is refused as overload")
      ->capture_default_str();
  add_duration_flag(*command, "deadline-margin", server.controller.timing.margin_min,
                    "plan each answer to be ready at least this long before its deadline; more where more is measured");
  add_duration_flag(*command, "fence-after", server.controller.health->fence_after,
                    "fence a worker that has sent nothing for so long");
  add_duration_flag(*command, "drain-timeout", server.drain_timeout, "how long to finish what runs when stopping");
  add_observation_flags(*command, server.observation, "--listen");
  add_link_tls_flags(*command, server.tls);
  add_logger_flags(*command, flags->log);
  command->callback([flags, &exit_code] {
    const Status status = run(*flags);
    if (!status.ok()) fmt::print(stderr, "foliot controller: {}\n", status.message());
    exit_code = status.ok() ? 0 : 1;
  });
}

}  // namespace foliot
