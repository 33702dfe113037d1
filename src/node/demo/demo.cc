
#include "node/demo/demo.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "control/policies/registry.h"
#include "engine/container/temporary_folder.h"
#include "foundation/base/units.h"
#include "load/client/bench.h"
#include "node/demo/demo_network.h"
#include "node/server/server.h"
#include "observe/request_log/log.h"
#include "planning/pipelines/logged_workload.h"
#include "virtual/simulation/simulation.h"

namespace foliot {
namespace {

constexpr const char* kModel = "demo";
constexpr Duration kDeadline = Duration::milliseconds(100);
// In order of arrival. It drops what can't be in time, so what it is asked here has no deadline. Of the policies that
// keep the order it answers the most of this network, whose rows gain little by a batch.
constexpr const char* kFifoPolicy = "fcfs";
// Parts of --seconds: how much the machine can do, and each of the two loads.
constexpr double kProbePart = 0.2;
constexpr double kLoadPart = 0.4;
// Of what was answered per second, one request on each lane at a time, some is kept free, since arrivals are uneven. So
// the order of arrival alone, without batches, can keep up, too.
constexpr double kSteadyShare = 0.8;
constexpr double kOverload = 3;

// Keeps why the network cannot be served.
class DemoReporter : public StartupReporter {
 public:
  void on_compiling(std::string_view /*model*/, std::string_view /*step*/, double /*share*/) override {}
  void on_model(std::string_view /*model*/, const Status& status) override {
    if (!status.ok()) failure_ = status;
  }
  void on_progress(const StartupProgress& /*progress*/) override {}
  void on_note(std::string_view /*note*/) override {}
  const Status& failure() const { return failure_; }

 private:
  Status failure_;
};

// One row of the table, in shares of what was asked.
struct DemoRow {
  std::string server;
  double in_time = 0;
  double late = 0;
  double refused = 0;
  Duration median_wait;  // for an answer
};

Status write_network(const std::filesystem::path& file) {
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  const std::string content = demo_network();
  std::ofstream stream(file, std::ios::binary);
  stream << content;
  stream.close();
  if (stream) return Status();
  return Status::internal(
      fmt::format("cannot write '{}'; give a folder that can be written, with --keep FOLDER or the "
                  "environment's TMPDIR",
                  file.string()));
}

ServerOptions server_options(ServerOptions options, const std::filesystem::path& folder) {
  options.repository = folder / fmt::format("{}.onnx", kModel);
  options.frontend.http_port = options.frontend.grpc_port = options.frontend.metrics_port = 0;
  options.log.folder = folder / "log";
  return options;
}

// Poisson arrivals at this rate: the server and the simulator are asked at the same instants.
Workload workload_of(double rate, std::optional<Duration> deadline) {
  Stream stream{.name = "users", .models = {}};
  stream.arrivals.rate = rate;
  stream.slo = deadline;
  stream.best_effort = !deadline;
  return {.groups = {{.name = kModel, .profile = kModel}}, .streams = {std::move(stream)}};
}

// Of the answered, which share came within the deadline; the histogram has quantiles only.
double share_within(const Histogram& latency, Duration deadline) {
  constexpr int kSteps = 20;
  double low = 0, high = 1;
  if (latency.quantile(1) <= deadline) return 1;
  for (int i = 0; i < kSteps; ++i) {
    const double middle = (low + high) / 2;
    (latency.quantile(middle) <= deadline ? low : high) = middle;
  }
  return low;
}

class Demo {
 public:
  Demo(const DemoOptions& options, std::filesystem::path folder) : options_(options), folder_(std::move(folder)) {}

  // Ends early, without an error, when it is interrupted.
  Status run();

 private:
  Status start();
  Result<LoadReport> send(BenchOptions options, double part, std::string_view what);
  Status measure_rate();
  Status ask(double rate, std::string_view what);
  Status compare();
  Result<DemoRow> play_fifo(const LoggedWorkload& logged, double rate) const;

  struct Asked {
    std::string_view what;
    double rate;
    LoadReport report;
  };

  const DemoOptions& options_;
  const std::filesystem::path folder_;
  std::optional<Server> server_;
  uint32_t devices_ = 1;
  uint32_t lanes_ = 0;  // of all devices
  double rate_ = 0;     // that the machine can answer
  std::vector<Asked> asked_;
};

Status Demo::start() {
  const std::filesystem::path file = folder_ / fmt::format("{}.onnx", kModel);
  FOLIOT_RETURN_IF_ERROR(write_network(file));
  const ServerOptions options = server_options(options_.server, folder_);
  devices_ = static_cast<uint32_t>(options.worker.devices.size());
  for (const DevicePlace& place : options.worker.devices) lanes_ += place.lanes;
  std::error_code error;
  options_.print(fmt::format("Made a small image network ({} of ONNX). Compiling and serving it ...",
                             format_bytes(std::filesystem::file_size(file, error))));
  DemoReporter reporter;
  server_.emplace(options);
  FOLIOT_RETURN_IF_ERROR(server_->start(reporter, options_.stopped));
  if (options_.stopped()) return Status();
  FOLIOT_RETURN_IF_ERROR(reporter.failure());
  options_.print(fmt::format("Look at it meanwhile: http://127.0.0.1:{}/\n", server_->frontend().metrics_port()));
  return Status();
}

Result<LoadReport> Demo::send(BenchOptions options, double part, std::string_view what) {
  options.url = fmt::format("127.0.0.1:{}", server_->frontend().grpc_port());
  options.warmup = Duration();
  options.duration = Duration::from_seconds(options_.seconds * part);
  options_.print(fmt::format("{} ({})", what, format_duration(options.duration)));
  LoadHooks hooks;
  hooks.should_stop = options_.stopped;
  return run_bench(options, hooks);
}

Status Demo::measure_rate() {
  BenchOptions options;
  options.models = {kModel};
  options.concurrency = lanes_;
  FOLIOT_ASSIGN_OR_RETURN(const LoadReport report,
                          send(std::move(options), kProbePart, "Finding out how much this machine can do"));
  rate_ = kSteadyShare * report.goodput();
  if (rate_ > 0 || options_.stopped()) return Status();
  return Status::unavailable(
      "nothing was answered while the machine was measured; give it more time with --seconds 60");
}

Status Demo::ask(double rate, std::string_view what) {
  BenchOptions options;
  options.workload = workload_of(rate, kDeadline);
  const std::string line =
      fmt::format("{}: {:.0f} requests per second, each wanted within {}", what, rate, format_duration(kDeadline));
  FOLIOT_ASSIGN_OR_RETURN(LoadReport report, send(std::move(options), kLoadPart, line));
  asked_.push_back({what, rate, std::move(report)});
  return Status();
}

Result<DemoRow> Demo::play_fifo(const LoggedWorkload& logged, double rate) const {
  SimulationOptions options;
  options.noise.seen_execs = logged.seen_execs;
  options.lanes = {.count = logged.lanes, .parallel_share = logged.parallel_share};
  options.policy = kFifoPolicy;
  FOLIOT_ASSIGN_OR_RETURN(const RegisteredPolicy policy, find_policy(kFifoPolicy));
  options.make_policy = policy.make;
  options.devices = devices_;
  options.preload = true;
  options.seed = BenchOptions().seed;
  options.duration = Duration::from_seconds(options_.seconds * kLoadPart);
  Workload workload = workload_of(rate, std::nullopt);
  workload.groups = logged.workload.groups;  // with the profile that the log gave
  FOLIOT_ASSIGN_OR_RETURN(const SimulationReport report, simulate(options, workload, logged.profiles));
  const auto offered = static_cast<double>(std::max<uint64_t>(1, report.all.offered));
  const double answered = static_cast<double>(report.all.good) / offered;
  const double in_time = answered * share_within(report.all.latency, kDeadline);
  return DemoRow{"first come, first served *", in_time, answered - in_time, 1 - answered,
                 report.all.latency.quantile(0.5)};
}

DemoRow row_of(const LoadTally& tally) {
  const auto offered = static_cast<double>(std::max<uint64_t>(1, tally.offered));
  const auto share = [&](uint64_t count) { return static_cast<double>(count) / offered; };
  return {"Foliot", share(tally.good), share(tally.late), share(tally.refused), tally.latency.quantile(0.5)};
}

// With the durations that the server measured.
Status Demo::compare() {
  FOLIOT_ASSIGN_OR_RETURN(const Log log, Log::read(folder_ / "log"));
  FOLIOT_ASSIGN_OR_RETURN(const LoggedWorkload logged,
                          read_logged_workload(log, {}, SimulationOptions().page_bytes, (folder_ / "log").string()));
  std::vector<DemoRow> fifo;
  for (const Asked& each : asked_) {
    FOLIOT_ASSIGN_OR_RETURN(fifo.emplace_back(), play_fifo(logged, each.rate));
  }
  options_.print(fmt::format("\n{:<30}{:>10}{:>10}{:>10}", "", "in time", "too late", "refused"));
  for (size_t i = 0; i < asked_.size(); ++i) {
    const Asked& each = asked_[i];
    options_.print(fmt::format("{}: {:.0f} requests per second", each.what, each.rate));
    for (const DemoRow& row : {row_of(each.report.total()), fifo[i]}) {
      options_.print(fmt::format("  {:<28}{:>8.1f} %{:>8.1f} %{:>8.1f} %", row.server, 100 * row.in_time,
                                 100 * row.late, 100 * row.refused));
    }
  }
  const LoadReport& most = asked_.back().report;
  if (most.total().refused > 0) {
    options_.print(fmt::format(
        "\nAt three times, half of the refused knew it within {} and could ask elsewhere; in the queue of the other\n"
        "server half waited longer than {}.",
        format_duration(most.refusal_latency().quantile(0.5)), format_duration(fifo.back().median_wait)));
  }
  options_.print(
      "\n* In virtual time: the same arrivals, with the durations that were measured here, at a server that answers\n"
      "  all in the order in which they come, one by one on each lane, and refuses none.");
  const bool lagged = std::ranges::any_of(asked_, [](const Asked& each) { return each.report.generator_lagged(); });
  const bool failed = std::ranges::any_of(asked_, [](const Asked& each) { return each.report.total().failed > 0; });
  if (lagged || failed) {
    options_.print("  This machine was too busy for exact figures: the load came late, or in part failed.");
  }
  return Status();
}

Status Demo::run() {
  FOLIOT_RETURN_IF_ERROR(start());
  if (!options_.stopped()) FOLIOT_RETURN_IF_ERROR(measure_rate());
  if (!options_.stopped()) FOLIOT_RETURN_IF_ERROR(ask(rate_, "A load that it can carry"));
  if (!options_.stopped()) FOLIOT_RETURN_IF_ERROR(ask(kOverload * rate_, "Three times that"));
  server_->stop();
  if (options_.stopped()) {
    options_.print("stopped before the end");
    return Status();
  }
  FOLIOT_RETURN_IF_ERROR(compare());
  if (options_.keep.empty()) return Status();
  options_.print(fmt::format("\nKept in {0}:\n  foliot explain --slowest --log {0}/log\n  foliot serve {0}/{1}.onnx",
                             folder_.string(), kModel));
  return Status();
}

}  // namespace

Status run_demo(const DemoOptions& options) {
  if (!options.keep.empty()) return Demo(options, options.keep).run();
  FOLIOT_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::make());
  return Demo(options, folder.path()).run();
}

}  // namespace foliot
