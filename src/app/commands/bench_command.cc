#include "app/commands/bench_command.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/commands/exit_code.h"
#include "app/commands/flags.h"
#include "app/commands/help_formatter.h"
#include "app/commands/progress_bar.h"
#include "foundation/config/toml_file.h"
#include "foundation/config/toml_reader.h"
#include "load/client/bench.h"
#include "load/workload/arrival_trace.h"
#include "load/workload/workload_file.h"

namespace foliot {
namespace {

constexpr const char* kBenchDescription = "Send load to a running server and report latency and goodput";
constexpr const char* kBenchFooter =
    R"(Open loop (the default): requests are due when --arrivals says, whatever the server does, and latency counts from the
instant a request was due; so a server that falls behind cannot hide it. This is what users on the internet do, and
what shows whether deadlines hold.
Closed loop (--concurrency C): C users who each wait for their answer before they ask again. It shows capacity.

  foliot bench --rate 500 --deadline 50ms                      all models, Poisson arrivals, deadline 50 ms
  foliot bench --model resnet50 --concurrency 16               how many per second can it do?
  foliot bench --rate 500 --arrivals gamma --cv 4              the same load in bursts
  foliot bench --protocol http --rate 500 --json result.json   over HTTP, and keep the figures

Several streams of requests, each with models, arrivals and deadlines of its own, come from a file, which 'foliot
simulate' plays too, with the same arrivals (docs/SIMULATE.md):

  foliot bench --workload examples/simulate/served.toml

goodput = answers within their deadline per second; attainment = their share of what was offered, where a refused
request counts as missed.)";

// The flags as typed, not interpreted yet.
struct BenchFlags {
  std::string url;
  std::string protocol = "grpc";
  std::string workload;
  std::vector<std::string> models;
  double zipf = 0;
  uint32_t concurrency = 0;
  double rate = 100;
  std::string arrivals = "poisson";
  double coefficient_of_variation = 2;
  std::string mean_on = "1s";
  std::string mean_off = "1s";
  std::string spike_start = "5s";
  std::string spike_rise = "1s";
  std::string spike_length = "1s";
  double spike_factor = 3;
  double ramp_rate = 1000;
  std::string ramp_length = "10s";
  std::string trace;
  std::string duration;
  std::string warmup;
  std::string deadline;
  TaskNeeds needs;
  uint32_t batch = 1;
  std::vector<std::string> shapes;
  uint32_t connections = 0;
  uint32_t threads = 1;
  uint32_t in_flight_max = 8192;
  std::string spin = "0s";
  std::optional<uint64_t> seed;
  std::string json;
};

// "50ms", "1.5s", "800us", "2m".
Result<Duration> parse_flag(std::string_view flag, const std::string& text) {
  struct Unit {
    std::string_view name;
    double seconds;
  };
  constexpr std::array<Unit, 4> kUnits{{{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}}};
  constexpr double kSecondsMax = 1e9;
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(parsed.ptr, static_cast<size_t>(text.data() + text.size() - parsed.ptr));
  for (const Unit& candidate : kUnits) {
    if (parsed.ec == std::errc() && unit == candidate.name && value >= 0 && value * candidate.seconds < kSecondsMax) {
      return Duration::from_seconds(value * candidate.seconds);
    }
  }
  return Status::invalid_argument(
      fmt::format("{} '{}': write a number and a unit: 800us, 50ms, 1.5s or 2m", flag, text));
}

// "ids:1,128".
Status parse_shape(const std::string& text, InputShapes& shapes) {
  const size_t colon = text.rfind(':');
  std::vector<int64_t> shape;
  const char* next = text.data() + (colon == std::string::npos ? text.size() : colon + 1);
  const char* const end = text.data() + text.size();
  while (next < end) {
    int64_t extent = 0;
    const auto parsed = std::from_chars(next, end, extent);
    if (parsed.ec != std::errc() || extent < 0 || (parsed.ptr < end && *parsed.ptr != ',')) break;
    shape.push_back(extent);
    next = parsed.ptr + 1;
    if (parsed.ptr == end) {
      shapes[text.substr(0, colon)] = shape;
      return Status();
    }
  }
  return Status::invalid_argument(fmt::format("--shape '{}': write input:extent,extent,... as in ids:1,128", text));
}

Result<ArrivalOptions> understand_arrivals(const BenchFlags& flags) {
  ArrivalOptions arrivals;
  arrivals.kind = *parse_arrival_kind(flags.arrivals);  // CLI11 let nothing else through
  arrivals.rate = flags.rate;
  arrivals.coefficient_of_variation = flags.coefficient_of_variation;
  FOLIOT_ASSIGN_OR_RETURN(arrivals.mean_on, parse_flag("--mean-on", flags.mean_on));
  FOLIOT_ASSIGN_OR_RETURN(arrivals.mean_off, parse_flag("--mean-off", flags.mean_off));
  FOLIOT_ASSIGN_OR_RETURN(arrivals.spike_start, parse_flag("--spike-start", flags.spike_start));
  FOLIOT_ASSIGN_OR_RETURN(arrivals.spike_rise, parse_flag("--spike-rise", flags.spike_rise));
  FOLIOT_ASSIGN_OR_RETURN(arrivals.spike_length, parse_flag("--spike-length", flags.spike_length));
  arrivals.spike_factor = flags.spike_factor;
  arrivals.ramp_rate = flags.ramp_rate;
  FOLIOT_ASSIGN_OR_RETURN(arrivals.ramp_length, parse_flag("--ramp-length", flags.ramp_length));
  if (arrivals.kind == ArrivalKind::kReplay) {
    if (flags.trace.empty()) return Status::invalid_argument("--arrivals replay needs --trace FILE");
    FOLIOT_ASSIGN_OR_RETURN(arrivals.instants, read_arrival_trace(flags.trace));
  }
  return arrivals;
}

// The workload of the file, with its duration and seed unless a flag overrides them.
// The simulator's tables of the file are ignored.
Status understand_workload(const BenchFlags& flags, BenchOptions& options) {
  FOLIOT_ASSIGN_OR_RETURN(const toml::table table, read_toml_file(flags.workload));
  TomlReader reader(table, flags.workload);
  for (const char* key :
       {"schedulers", "interval", "cluster", "noise", "faults", "random_faults", "targets", "profiles"}) {
    reader.leave(key);
  }
  WorkloadRun run;
  read_run(reader, run);
  if (!reader.ok()) return reader.finish();
  FOLIOT_ASSIGN_OR_RETURN(options.workload, read_workload(reader, nullptr));
  FOLIOT_RETURN_IF_ERROR(reader.finish());
  if (!flags.duration.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(run.duration, parse_flag("--duration", flags.duration));
  }
  if (!flags.warmup.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(run.warm_up, parse_flag("--warmup", flags.warmup));
  }
  if (run.warm_up >= run.duration) {
    return Status::invalid_argument("--duration: a workload's warm-up is a part of it, and must be shorter");
  }
  options.workload_name = flags.workload;
  options.preload = run.preload;
  options.seed = flags.seed.value_or(run.seed);
  options.warmup = run.warm_up;
  options.duration = run.duration - run.warm_up;
  return Status();
}

// One stream, from flags.
Status understand_stream(const BenchFlags& flags, BenchOptions& options) {
  options.models = flags.models;
  options.zipf = flags.zipf;
  options.needs = flags.needs;
  if (flags.concurrency > 0) options.concurrency = flags.concurrency;
  FOLIOT_ASSIGN_OR_RETURN(options.arrivals, understand_arrivals(flags));
  if (!flags.duration.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(options.duration, parse_flag("--duration", flags.duration));
  }
  if (!flags.warmup.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(options.warmup, parse_flag("--warmup", flags.warmup));
  }
  if (!flags.deadline.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(options.deadline, parse_flag("--deadline,--timeout", flags.deadline));
  }
  options.seed = flags.seed.value_or(options.seed);
  return Status();
}

Result<BenchOptions> understand(const BenchFlags& flags) {
  BenchOptions options;
  options.protocol = flags.protocol == "http" ? ClientProtocol::kHttp : ClientProtocol::kGrpc;
  options.url = flags.url;
  if (options.url.empty()) {
    options.url = options.protocol == ClientProtocol::kHttp ? "127.0.0.1:8000" : "127.0.0.1:8001";
  }
  FOLIOT_RETURN_IF_ERROR(flags.workload.empty() ? understand_stream(flags, options)
                                                : understand_workload(flags, options));
  options.rows = flags.batch;
  for (const std::string& shape : flags.shapes) FOLIOT_RETURN_IF_ERROR(parse_shape(shape, options.shapes));
  options.connections = flags.connections;
  options.threads = flags.threads;
  options.in_flight_max = flags.in_flight_max;
  FOLIOT_ASSIGN_OR_RETURN(options.spin, parse_flag("--spin", flags.spin));
  return options;
}

// While it lives, SIGINT and SIGTERM wait to be asked for instead of ending the
// process; threads started meanwhile inherit that.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&held_);
    sigaddset(&held_, SIGINT);
    sigaddset(&held_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  // True if one has come since the last time.
  bool take() const {
    const timespec at_once{};
    return sigtimedwait(&held_, nullptr, &at_once) > 0;
  }

 private:
  sigset_t held_;
  sigset_t before_;
};

std::string progress_text(const LoadProgress& now, const LoadProgress& before) {
  const double seconds = (now.elapsed - before.elapsed).to_seconds();
  const auto rate = [&](uint64_t count, uint64_t count_before) {
    return seconds > 0 ? static_cast<double>(count - count_before) / seconds : 0;
  };
  return fmt::format("{:.0f} s{}, answered {:.0f}/s, refused {:.0f}/s, failed {:.0f}/s, in flight {}",
                     now.elapsed.to_seconds(), now.warming_up ? " (warm-up)" : "", rate(now.answered, before.answered),
                     rate(now.refused, before.refused), rate(now.failed, before.failed), now.in_flight);
}

Status write_json(const LoadReport& report, const std::string& path) {
  if (path == "-") {
    fmt::print("{}", report.to_json());
    return Status();
  }
  std::ofstream file(path);
  file << report.to_json();
  file.close();
  if (!file) return Status::invalid_argument(fmt::format("--json: cannot write '{}'", path));
  return Status();
}

Status run(const BenchOptions& options, const std::string& json) {
  const HeldSignals signals;
  LoadHooks hooks;
  hooks.should_stop = [&signals] { return signals.take(); };
  ProgressBar bar("sending");
  LoadProgress before;
  hooks.on_progress = [&](const LoadProgress& now) {
    bar.show("requests", progress_text(now, before), now.elapsed.to_seconds() / now.length.to_seconds());
    before = now;
  };
  const Result<LoadReport> report = run_bench(options, hooks);
  bar.clear();
  if (!report.ok()) return report.status();
  if (json != "-") fmt::print("{}", report->to_text());
  return json.empty() ? Status() : write_json(*report, json);
}

void add_target_flags(CLI::App& command, BenchFlags& flags) {
  const FlagGroup group(command, "Server and requests");
  command.add_option("--url", flags.url, "Server, host:port [127.0.0.1:8001, with --protocol http :8000]");
  command.add_option("--protocol", flags.protocol, "grpc or http")
      ->check(CLI::IsMember({"grpc", "http"}))
      ->capture_default_str();
  command.add_option("-b,--batch", flags.batch, "Rows in each request")->capture_default_str();
  command.add_option("--shape", flags.shapes, "Extents of an input whose shape is variable, e.g. ids:1,128")
      ->type_name("INPUT:EXTENTS");
}

// Flags that a workload file replaces.
void add_stream_flags(CLI::App& command, BenchFlags& flags) {
  const FlagGroup group(command, "One stream of requests (not with --workload)");
  command.add_option("-m,--model", flags.models, "Model to ask; may be repeated [all that are ready]")
      ->type_name("NAME");
  command.add_option("--zipf", flags.zipf, "Popularity of several models: exponent of Zipf's law, 0 is uniform")
      ->capture_default_str();
  command.add_option("--deadline,--timeout", flags.deadline, "Deadline of each request, e.g. 50ms [none: best effort]");
  command
      .add_option("--accuracy", flags.needs.accuracy, "Of a task: the least accuracy that is asked for [the task's]")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("NUMBER");
  command.add_option("--cost", flags.needs.cost, "Of a task: the most that a row may cost, in dollars [any]")
      ->check(CLI::PositiveNumber)
      ->type_name("NUMBER");
  auto* const closed =
      command.add_option("-c,--concurrency", flags.concurrency, "Closed loop: so many requests at a time");
  command.add_option("-r,--rate", flags.rate, "Open loop: requests per second")
      ->capture_default_str()
      ->excludes(closed);
  command.add_option("--arrivals", flags.arrivals, "Open loop: how they arrive")
      ->check(CLI::IsMember({"poisson", "gamma", "uniform", "on-off", "spike", "ramp", "replay"}))
      ->capture_default_str()
      ->excludes(closed);
  command
      .add_option("--cv", flags.coefficient_of_variation, "gamma: coefficient of variation of the gaps; 1 is Poisson")
      ->capture_default_str();
  command.add_option("--mean-on", flags.mean_on, "on-off: mean length of a burst")->capture_default_str();
  command.add_option("--mean-off", flags.mean_off, "on-off: mean length of the silence between")->capture_default_str();
  command.add_option("--spike-start", flags.spike_start, "spike: when the rate begins to rise")->capture_default_str();
  command.add_option("--spike-rise", flags.spike_rise, "spike: how long it rises, and falls")->capture_default_str();
  command.add_option("--spike-length", flags.spike_length, "spike: how long it stays up")->capture_default_str();
  command.add_option("--spike-factor", flags.spike_factor, "spike: times --rate at the top")->capture_default_str();
  command.add_option("--ramp-rate", flags.ramp_rate, "ramp: requests per second at its end")->capture_default_str();
  command.add_option("--ramp-length", flags.ramp_length, "ramp: how long it takes from --rate")->capture_default_str();
  command.add_option("--trace", flags.trace, "replay: file with one instant per line, in seconds");
}

// It excludes the flags that are there so far: those of a stream.
void add_workload_flag(CLI::App& command, BenchFlags& flags) {
  const std::vector<CLI::Option*> others = command.get_options();
  auto* const workload = command.add_option(
      "-w,--workload", flags.workload, "Send the requests of this file, as 'foliot simulate' does (docs/SIMULATE.md)");
  workload->type_name("FILE.toml");
  for (CLI::Option* other : others) {
    if (other != command.get_help_ptr()) workload->excludes(other);
  }
}

void add_run_flags(CLI::App& command, BenchFlags& flags) {
  const FlagGroup group(command, "Run and report");
  command.add_option("-d,--duration", flags.duration,
                     "How long to measure [10s; of a workload, its own, and with its warm-up]");
  command.add_option("--warmup", flags.warmup, "Sent before, and not counted [1s; of a workload, its own]");
  add_seed_flag(command, flags.seed, "Of arrivals, choice of models, and inputs", "1; of a workload, its own");
  command.add_option("--json", flags.json, "Write the report as JSON to this file; - for standard output")
      ->type_name("FILE");
  command.add_option("--connections", flags.connections, "To the server [gRPC 4; HTTP as needed, up to 512]");
  command.add_option("--threads", flags.threads, "Receiving threads of the generator")->capture_default_str();
  command.add_option("--in-flight-max", flags.in_flight_max, "Open loop: requests beyond it count as unsent")
      ->capture_default_str();
  command.add_option("--spin", flags.spin, "Spin before each send: more punctual, but takes a core")
      ->capture_default_str();
}

}  // namespace

void add_bench_command(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<BenchFlags>();
  CLI::App& command = *app.add_subcommand("bench", kBenchDescription);
  command.footer(kBenchFooter);
  add_stream_flags(command, *flags);
  add_workload_flag(command, *flags);
  add_target_flags(command, *flags);
  add_run_flags(command, *flags);
  command.callback([flags, &exit_code] {
    const Result<BenchOptions> options = understand(*flags);
    const Status status = options.ok() ? run(*options, flags->json) : options.status();
    if (!status.ok()) fmt::print(stderr, "foliot bench: {}\n", status.message());
    const bool is_usage = !options.ok() && flags->workload.empty();  // else it may be the file
    exit_code = status.ok() ? 0 : is_usage ? kExitUsage : kExitFailed;
  });
}

}  // namespace foliot
