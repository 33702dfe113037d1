#include "app/commands/frontend_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "app/commands/access_flags.h"
#include "app/commands/container_launch_command.h"
#include "app/commands/flags.h"
#include "app/commands/logger_flags.h"
#include "app/commands/part_flags.h"
#include "app/commands/stop_signals.h"
#include "node/server/frontend_server.h"

namespace foliot {
namespace {

struct FrontendFlags {
  FrontendServerOptions server;
  LoggerOptions log{.part = "frontend"};
};

Status run(const FrontendFlags& flags) {
  if (flags.server.watch_interval && flags.server.applications.empty() && flags.server.personal.empty()) {
    return Status::invalid_argument("--watch looks for changes of --applications and --personal; give one of these");
  }
  StopSignals signals;
  Logger log(flags.log, standard_error());
  FrontendServerOptions options = flags.server;
  options.container_command = container_launch_command();
  options.python_package = python_package_folder();
  options.frontend.log_levels = log_levels(flags.log);
  options.on_failure = [&](const std::string& what) { log.write(Severity::kWarning, what); };
  options.on_ready = [&](size_t models) { say(log, fmt::format("ready: {} models", models)); };
  FrontendServer server(std::move(options), log);
  FOLIOT_RETURN_IF_ERROR(server.start());
  say(log, fmt::format("listening: {}; controller {}", server.ports(), flags.server.controller));
  signals.wait();
  say(log, "stopping: answering what is in flight");
  server.stop();
  say(log, "stopped");
  return Status();
}

}  // namespace

void add_frontend_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("frontend", "Run a front end: HTTP and gRPC for a controller and its workers");
  command->footer(
      "Receives requests, keeps their inputs until a worker fetches them, and answers. The controller gets only\n"
      "their model and deadline. There may be many front ends, in front of them any balancer that asks\n"
      "/v2/health/ready: a front end that has lost its controller is not ready, refuses at once with 503, and\n"
      "finds it again by itself.\n\n"
      "  foliot controller --listen 0.0.0.0:8100                                            # machine a\n"
      "  foliot worker models --controller a:8100 --data-listen 0.0.0.0:8200                # machines b, c, ...\n"
      "  foliot frontend --controller a:8100 --address 0.0.0.0                              # machines d, e, ...\n\n"
      "With --personal front ends serve personal models, too: each user is kept by two of them, named by the\n"
      "controller, and all pass calls on to these.\n\n"
      "  foliot frontend --controller a:8100 --personal models --home-listen 0.0.0.0:8300\n\n"
      "With --jobs a front end keeps offline queries over files, as `foliot serve` does. A folder of jobs has one "
      "front\n"
      "end; or several, which see the same folder, such as one of NFS, and share the jobs through Redis. Each of them\n"
      "answers every call, and one runs the jobs. When that one ends, another goes on within some 10 seconds.\n\n"
      "  foliot frontend --controller a:8100 --jobs /srv/jobs\n"
      "  foliot frontend --controller a:8100 --jobs /mnt/jobs --jobs-store redis://r        # machines d, e, ...\n\n"
      "Ctrl-C answers what is in flight and stops.");
  auto flags = std::make_shared<FrontendFlags>();
  FrontendServerOptions& server = flags->server;
  command
      ->add_option("--controller", server.controller,
                   "HOST:PORT of the controller; of several, each of them, with commas between")
      ->capture_default_str();
  add_frontend_flags(*command, server.frontend);
  command
      ->add_option("--applications", server.applications,
                   "folder with NAME/application.toml of the applications that it serves, over the cluster's models")
      ->type_name("FOLDER")
      ->default_str("none");
  add_state_flag(*command, server.state);
  add_container_flags(*command, server.containers);
  add_duration_flag(*command, "watch", server.watch_interval,
                    "how often to look for changes of --applications and --personal", "off");
  add_access_flags(*command, server.access, server.frontend);
  add_link_tls_flags(*command, server.link_tls);
  command->add_option("--personal", server.personal, "repository of personal models whose users this front end keeps")
      ->type_name("FOLDER")
      ->default_str("none");
  command->add_option("--observations", server.observations, "folder in which these keep observations")
      ->type_name("FOLDER")
      ->default_str("PERSONAL/.observations");
  command
      ->add_option("--home-listen", server.home_listen,
                   "HOST:PORT for other front ends that keep users; trusted "
                   "networks only, or with link TLS")
      ->capture_default_str();
  command
      ->add_option("--name", server.name,
                   "of this front end among those that keep users: each has another one, the "
                   "same after a restart")
      ->default_str("HOST:PORT of --home-listen");
  command->add_option("--personal-threads", server.personal_threads, "threads for predictions of personal models")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  add_job_flags(*command, server.jobs);
  add_tracing_flags(*command, server.tracing);
  command
      ->add_option("--jobs-store", server.jobs.store,
                   "Redis that keeps the jobs for all front ends that name it and share --jobs, in place of a "
                   "database in that folder: redis://HOST[:PORT][/DATABASE] or unix:PATH of its socket; its password "
                   "is FOLIOT_REDIS_PASSWORD of the environment")
      ->type_name("PLACE")
      ->default_str("the folder of --jobs")
      ->group("Jobs")
      ->needs(command->get_option("--jobs"));
  command->get_option("--state")->needs(command->get_option("--applications"));
  for (const char* of_personal : {"--observations", "--home-listen", "--name", "--personal-threads"}) {
    command->get_option(of_personal)->needs(command->get_option("--personal"));
  }
  add_logger_flags(*command, flags->log);
  add_bytes_flag(*command, "frame-max", server.frame_bytes_max, "largest inputs or outputs of one row, on the wire");
  add_duration_flag(*command, "drain-timeout", server.drain_timeout,
                    "how long to answer what is in flight when stopping");
  command->callback([flags, &exit_code] {
    const Status status = run(*flags);
    if (!status.ok()) fmt::print(stderr, "foliot frontend: {}\n", status.message());
    exit_code = status.ok() ? 0 : 1;
  });
}

}  // namespace foliot
