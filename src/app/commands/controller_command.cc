#include "app/commands/controller_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
#include "app/commands/observation.h"
#include "app/commands/stop_signals.h"
#include "cluster/controller_service.h"
#include "metrics/controller_metrics.h"
#include "platform/clock.h"
#include "platform/thread.h"
#include "policies/registry.h"
#include "transport/link_loop.h"

namespace foliot {
namespace {

struct ControllerFlags {
  std::string listen = "127.0.0.1:8100";
  std::string scheduler = "foliot";
  ControllerOptions controller{.health = FailureDetectorOptions()};
  Duration drain_timeout = Duration::seconds(30);
  ObservationFlags observation;
  TlsFiles tls;
  LoggerOptions log{.part = "controller"};
};

// Before executors (serving/executor_thread.h), where the process may: everybody waits for
// this one thread.
constexpr int kNice = -15;

void wait_until_drained(const ControllerService& service, Duration patience) {
  const TimePoint give_up = monotonic_now() + patience;
  while (!service.drained() && monotonic_now() < give_up) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

// Metrics are counted only where they can be read.
void observe(ControllerService& service, const ObservationFlags& flags, ControllerMetrics& metrics,
             Recorder* recorder) {
  Controller& controller = service.controller();
  if (flags.metrics()) {
    controller.add_observer(metrics);
    service.set_turn_watch(
        [&](Duration decision) { metrics.on_turn(decision, controller.queued(), controller.actions_outstanding()); });
  }
  if (recorder != nullptr) {
    controller.add_observer(*recorder);
    service.set_label_sink(*recorder);
  }
}

Status run(const ControllerFlags& flags) {
  StopSignals signals;
  Logger log(flags.log, standard_error());
  FOLIOT_ASSIGN_OR_RETURN(const RegisteredPolicy policy, find_policy(flags.scheduler));
  ControllerMetrics metrics;
  FOLIOT_ASSIGN_OR_RETURN(const auto observation,
                          Observation::open(
                              flags.observation, flags.listen, [&] { return metrics.text(); }, log));
  ControllerService service(flags.controller, policy.make, monotonic_now,
                            [&](Severity level, const std::string& line) { log.write(level, line); });
  observe(service, flags.observation, metrics, observation->recorder());
  FOLIOT_ASSIGN_OR_RETURN(auto tls, open_link_tls(flags.tls));
  LinkLoop loop({.connection = {.role = Role::kController}, .tls = std::move(tls)}, service);
  service.set_traffic(loop.traffic());
  FOLIOT_ASSIGN_OR_RETURN(const uint16_t port, loop.listen(flags.listen));
  std::vector<WatchedFiles> watched = observation->watched(log);
  std::ranges::move(link_tls_reloads(flags.tls, loop, log), std::back_inserter(watched));
  FileWatch watch(std::move(watched));
  FOLIOT_RETURN_IF_ERROR(watch.start(kReloadInterval));
  FOLIOT_ASSIGN_OR_RETURN(Thread thread, Thread::start({.name = "controller", .nice = kNice}, [&] { loop.run(); }));
  say(log, fmt::format("ready: port {}, scheduler {}{}", port, flags.scheduler, observation->description()));

  signals.wait();
  say(log, "stopping: finishing what runs");
  service.drain();
  loop.wake();
  wait_until_drained(service, flags.drain_timeout);
  loop.stop();  // says goodbye to everybody
  thread.join();
  say(log, "stopped");
  return Status();
}

}  // namespace

void add_controller_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("controller", "Decide for workers that connect over TCP");
  command->footer(
      "Workers bring their models; clients ask for them over the same port. Ctrl-C finishes what runs, refuses the\n"
      "rest, and stops.\n\n"
      "  foliot controller --listen 0.0.0.0:8100\n"
      "  foliot worker --emulate resnet50:15 --count 10 --controller localhost:8100\n"
      "  foliot bench-controller localhost:8100 --rate 5000 --deadline 100ms\n\n"
      "Without --tls-link-... there is no authentication: listen where only friends can reach.");
  auto flags = std::make_shared<ControllerFlags>();
  command->add_option("--listen", flags->listen, "HOST:PORT to listen on; port 0 for any that is free")
      ->capture_default_str();
  command->add_option("--scheduler", flags->scheduler, fmt::format("policy: {}", fmt::join(policy_names(), ", ")))
      ->capture_default_str();
  command
      ->add_option("--queued-max", flags->controller.queued_max,
                   "requests waiting; where there are more, what can wait longest is refused as overload")
      ->capture_default_str();
  add_duration_flag(*command, "deadline-margin", flags->controller.timing.margin_min,
                    "plan each answer to be ready at least this long before its deadline; more where more is measured");
  add_duration_flag(*command, "fence-after", flags->controller.health->fence_after,
                    "give up a worker that has not been heard of for so long");
  add_duration_flag(*command, "drain-timeout", flags->drain_timeout, "how long to finish what runs when stopping");
  add_observation_flags(*command, flags->observation, "--listen");
  add_link_tls_flags(*command, flags->tls);
  add_logger_flags(*command, flags->log);
  command->callback([flags, &exit_code] {
    const Status status = run(*flags);
    if (!status.ok()) fmt::print(stderr, "foliot controller: {}\n", status.message());
    exit_code = status.ok() ? 0 : 1;
  });
}

}  // namespace foliot
