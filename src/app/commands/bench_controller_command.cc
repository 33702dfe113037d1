#include "app/commands/bench_controller_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "app/commands/access_flags.h"
#include "app/commands/flags.h"
#include "cluster/transport/link_loop.h"
#include "foundation/base/units.h"
#include "virtual/emulation/request_load.h"

namespace foliot {
namespace {

struct BenchControllerFlags {
  std::string controller;
  RequestLoadOptions load;
  bool best_effort = false;
  std::string tenant;
  std::string json;
  TlsFiles tls;
};

double per_second(uint64_t count, Duration elapsed) {
  return elapsed > Duration() ? static_cast<double>(count) / elapsed.to_seconds() : 0;
}

std::string to_text(const Quantiles& quantiles) {
  return fmt::format("p50 {}  p99 {}  p99.9 {}  max {}", format_duration(quantiles.p50), format_duration(quantiles.p99),
                     format_duration(quantiles.p999), format_duration(quantiles.max));
}

std::string to_text(const Statistics& controller) {
  return fmt::format(
      "controller   {} devices, {:.0f} requests/s, {:.0f} actions/s, {:.0f} decisions/s, {:.0f} % of a core\n"
      "decision     {}\n"
      "in CPU time  {}\n",
      controller.devices, per_second(controller.requests, controller.elapsed),
      per_second(controller.actions, controller.elapsed), per_second(controller.decisions, controller.elapsed),
      100 * controller.processor_time.to_seconds() / controller.elapsed.to_seconds(), to_text(controller.decision),
      to_text(controller.decision_processor));
}

std::string to_json(const Quantiles& quantiles) {
  return fmt::format(R"({{"p50": {:.2f}, "p99": {:.2f}, "p99.9": {:.2f}, "max": {:.2f}}})",
                     quantiles.p50.to_microseconds(), quantiles.p99.to_microseconds(), quantiles.p999.to_microseconds(),
                     quantiles.max.to_microseconds());
}

std::string to_json(const Statistics& controller) {
  return fmt::format(
      "{{\"seconds\": {:.6f}, \"devices\": {}, \"requests\": {}, \"served\": {}, \"actions\": {}, \"decisions\": {}, "
      "\"processor_share\": {:.4f}, \"bytes_received\": {}, \"bytes_sent\": {}, \"decision_microseconds\": {}, "
      "\"decision_processor_microseconds\": {}}}",
      controller.elapsed.to_seconds(), controller.devices, controller.requests, controller.served, controller.actions,
      controller.decisions, controller.processor_time.to_seconds() / controller.elapsed.to_seconds(),
      controller.bytes_received, controller.bytes_sent, to_json(controller.decision),
      to_json(controller.decision_processor));
}

Status write_json(const RequestLoadResult& result, const std::string& path) {
  std::ofstream file(path);
  file << fmt::format("{{\"load\": {}, \"cold_starts\": {}, \"controller\": {}}}\n", result.load.to_json(),
                      result.cold_starts, to_json(result.controller));
  file.close();
  return file ? Status() : Status::invalid_argument(fmt::format("--json: cannot write '{}'", path));
}

Status run(const BenchControllerFlags& flags) {
  std::function<void()> stop;
  RequestLoadOptions options = flags.load;
  if (flags.best_effort) options.deadline.reset();
  if (!flags.tenant.empty()) options.tenant = tenant_named(flags.tenant);
  RequestLoad load(options, [&] { stop(); });
  FOLIOT_ASSIGN_OR_RETURN(auto tls, open_link_tls(flags.tls));
  LinkLoop loop({.connection = {.role = Role::kClient}, .tls = std::move(tls), .stop_on_signals = true}, load);
  stop = [&] { loop.stop(); };
  FOLIOT_RETURN_IF_ERROR(loop.connect(flags.controller));
  loop.run();
  FOLIOT_ASSIGN_OR_RETURN(const RequestLoadResult result, load.result());
  fmt::print("{}\ncold starts  {}\n{}", result.load.to_text(), result.cold_starts, to_text(result.controller));
  return flags.json.empty() ? Status() : write_json(result, flags.json);
}

}  // namespace

void add_bench_controller_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("bench-controller", "Send load directly to a controller, without front ends");
  command->footer(
      "Requests without inputs, due by a Poisson process whatever the controller does; latency counts from when a\n"
      "request was due. Shows what the controller can carry and how long its decisions take.\n\n"
      "  foliot bench-controller localhost:8100 --rate 50000 --deadline 100ms");
  auto flags = std::make_shared<BenchControllerFlags>();
  command->add_option("controller", flags->controller, "HOST:PORT of the controller")->required();
  command->add_option("-r,--rate", flags->load.rate, "requests per second")
      ->capture_default_str()
      ->check(CLI::Range(1e-3, 1e9));
  command->add_option("--zipf", flags->load.zipf, "popularity of the models: exponent of Zipf's law, 0 is uniform")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option(
          "--functions", flags->load.functions,
          "instead of a Poisson process: a trace like that of Azure Functions, with so many functions, each of\n"
          "which asks one of the models")
      ->check(CLI::Range(1, 1'000'000))
      ->excludes("--zipf");
  add_duration_flag(*command, "deadline", flags->load.deadline, "of each request", "100 ms");
  command->add_flag("--best-effort", flags->best_effort, "requests without a deadline; an answer is waited for 3 s");
  command->add_option("--tenant", flags->tenant, "the key whose share they count against")->type_name("NAME");
  add_duration_flag(*command, "duration", flags->load.duration, "how long to measure");
  add_duration_flag(*command, "warmup", flags->load.warm_up, "at the beginning, not counted, while the rate grows");
  add_seed_flag(*command, flags->load.seed, "of arrivals and choice of models");
  add_link_tls_flags(*command, flags->tls);
  command->add_option("--json", flags->json, "write the report as JSON to this file")->type_name("FILE");
  command->callback([flags, &exit_code] {
    const Status status = run(*flags);
    if (!status.ok()) fmt::print(stderr, "foliot bench-controller: {}\n", status.message());
    exit_code = status.ok() ? 0 : 1;
  });
}

}  // namespace foliot
