#include "app/commands/frontend_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/commands/access_flags.h"
#include "app/commands/flags.h"
#include "app/commands/logger_flags.h"
#include "app/commands/part_flags.h"
#include "app/commands/stop_signals.h"
#include "cluster/frontend_link.h"
#include "platform/clock.h"
#include "platform/thread.h"
#include "transport/link_loop.h"

namespace foliot {
namespace {

// Memory for so many of the largest frames that are partly received.
constexpr uint64_t kFramesAtOnce = 16;

struct FrontendFlags {
  std::string controller = "127.0.0.1:8100";
  FrontendOptions frontend;
  AccessFlags access;
  TlsFiles link_tls;
  LoggerOptions log{.part = "frontend"};
  uint64_t frame_bytes_max = kDataFrameBytesMax;
  Duration drain_timeout = Duration::seconds(30);
};

// Only the workers determine the models.
class NoRepository : public ModelRepository {
 public:
  void load(const std::string& /*name*/, std::function<void(Status)> done) override { done(refusal()); }
  void unload(const std::string& /*name*/, std::function<void(Status)> done) override { done(refusal()); }

 private:
  static Status refusal() {
    return Status::unimplemented("a front end has no repository: its models are those of the workers");
  }
};

void wait_until_answered(const Frontend& frontend, Duration limit) {
  const TimePoint give_up = monotonic_now() + limit;
  while (frontend.in_flight() > 0 && monotonic_now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Status run(const FrontendFlags& flags) {
  StopSignals signals;
  Logger log(flags.log, standard_error());
  FrontendOptions options = flags.frontend;
  FOLIOT_RETURN_IF_ERROR(open_access(flags.access, log, options));
  FOLIOT_ASSIGN_OR_RETURN(auto link_tls, open_link_tls(flags.link_tls));
  Catalog catalog;
  NoRepository repository;
  FrontendLink link(catalog, flags.frontend.requests_in_flight_max,
                    {.log = [&](Severity level, const std::string& line) { log.write(level, line); },
                     .on_ready = [&](size_t models) { say(log, fmt::format("ready: {} models", models)); }});
  LinkLoop loop({.connection = {.role = Role::kClient,
                                .frame_bytes_max = flags.frame_bytes_max,
                                .unsent_bytes_max = 4 * flags.frame_bytes_max},
                 .received_bytes_max = kFramesAtOnce * flags.frame_bytes_max,
                 .tls = std::move(link_tls)},
                link);
  const auto frontend = make_frontend(options, catalog, link, repository, monotonic_now);
  link.start(*frontend, loop);
  FOLIOT_RETURN_IF_ERROR(loop.keep(flags.controller));
  FOLIOT_RETURN_IF_ERROR(frontend->start());
  say(log, fmt::format("listening: http {}:{}, grpc :{}, metrics :{}/metrics; controller {}", flags.frontend.address,
                       frontend->http_port(), frontend->grpc_port(), frontend->metrics_port(), flags.controller));
  std::vector<WatchedFiles> watched = reloads(flags.access, *frontend, log);
  std::ranges::move(link_tls_reloads(flags.link_tls, loop, log), std::back_inserter(watched));
  FileWatch watch(std::move(watched));
  FOLIOT_RETURN_IF_ERROR(watch.start(kReloadInterval));
  FOLIOT_ASSIGN_OR_RETURN(Thread thread, Thread::start({.name = "links"}, [&] { loop.run(); }));

  signals.wait();
  say(log, "stopping: answering what is in flight");
  frontend->drain();
  wait_until_answered(*frontend, flags.drain_timeout);
  loop.stop();  // what is still in flight is refused
  thread.join();
  frontend->stop();
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
      "Ctrl-C answers what is in flight and stops.");
  auto flags = std::make_shared<FrontendFlags>();
  command->add_option("--controller", flags->controller, "HOST:PORT of the controller")->capture_default_str();
  add_frontend_flags(*command, flags->frontend);
  add_access_flags(*command, flags->access, flags->frontend);
  add_link_tls_flags(*command, flags->link_tls);
  add_logger_flags(*command, flags->log);
  add_bytes_flag(*command, "frame-max", flags->frame_bytes_max, "largest inputs or outputs of one row, on the wire");
  add_duration_flag(*command, "drain-timeout", flags->drain_timeout,
                    "how long to answer what is in flight when stopping");
  command->callback([flags, &exit_code] {
    const Status status = run(*flags);
    if (!status.ok()) fmt::print(stderr, "foliot frontend: {}\n", status.message());
    exit_code = status.ok() ? 0 : 1;
  });
}

}  // namespace foliot
