#include "app/commands/demo_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "app/commands/confined_compile_command.h"
#include "app/commands/container_launch_command.h"
#include "app/commands/exit_code.h"
#include "app/commands/part_flags.h"
#include "app/commands/stop_signals.h"
#include "node/demo/demo.h"

namespace foliot {
namespace {

Status demo(DemoOptions options) {
  StopSignals signals;
  options.stopped = [&signals] { return signals.arrived(); };
  options.print = [](const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  };
  ServerOptions& server = options.server;
  server.compile_command = confined_compile_command();
  server.container_command = container_launch_command();
  FOLIOT_ASSIGN_OR_RETURN(server.worker.devices, device_places({}));
  server.worker.contexts = contexts({}, server.scheduler, server.worker.devices);
  return run_demo(options);
}

}  // namespace

void add_demo_command(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("demo", "Serve a network made here, and ask more than this machine can answer");
  command->footer(
      "It needs no model and no other program: it writes a small network, serves it at free ports, measures how\n"
      "much the machine can answer, then asks that and three times that, and shows what was answered in time and\n"
      "what was refused, beside a server that answers in the order of arrival. Ctrl-C ends it. Nothing stays "
      "behind.\n\n"
      "  foliot demo\n"
      "  foliot demo --seconds 60 --keep demo");
  auto options = std::make_shared<DemoOptions>();
  command->add_option("--seconds", options->seconds, "how long to ask, in all")
      ->check(CLI::Range(2, 3600))
      ->capture_default_str();
  command->add_option("--keep", options->keep, "keep the network, what was compiled and the log in this folder")
      ->type_name("FOLDER");
  command->callback([options, &exit_code] {
    const Status status = demo(*options);
    if (!status.ok()) fmt::print(stderr, "foliot demo: {}\n", status.message());
    exit_code = status.ok() ? 0 : kExitFailed;
  });
}

}  // namespace foliot
