#include "app/commands/simulate_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/flags.h"
#include "app/commands/progress_bar.h"
#include "app/commands/simulate_links.h"
#include "app/commands/simulation_file.h"
#include "control/policies/registry.h"
#include "foundation/platform/clock.h"
#include "observe/request_log/log_writer.h"
#include "observe/request_log/recorder.h"
#include "virtual/bounds/report_text.h"
#include "virtual/simulation/kind_parts.h"
#include "virtual/simulation/simulation.h"

namespace foliot {
namespace {

constexpr const char* kSimulateFooter =
    R"(The controller, the policies and the workers' queueing logic are the ones that serve; devices, links and time are
simulated, so hours pass in seconds and a seed reproduces a run exactly. Refused requests count as missed.

  foliot simulate examples/simulate/resnets.toml
  foliot simulate examples/simulate/starved.toml --scheduler foliot,clockwork --output out
  foliot simulate examples/simulate/resnets.toml --scheduler all --duration 10s
  foliot simulate examples/simulate/faults.toml --seeds 1000
  foliot simulate examples/simulate/links.toml --seeds 1000     # sessions, registration, model changes
  foliot simulate --from-log log --scheduler all                # what a server was asked, under every policy

With --output DIR, DIR/POLICY.json holds each report and DIR/POLICY.csv its series, a line per interval.
docs/SIMULATE.md explains experiment files.)";

struct SimulateFlags {
  std::string experiment;
  SimulatedLog from;
  std::vector<std::string> policies;
  std::optional<uint64_t> seed;
  uint64_t seeds = 1;
  std::optional<Duration> duration;
  std::string output;
  std::filesystem::path log;
  bool bound = false;
};

Status write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? Status() : Status::internal(fmt::format("cannot write '{}'", path.string()));
}

Status write_reports(const std::string& folder, const std::vector<SimulationReport>& reports,
                     const FluidEstimate* estimate, const ClairvoyantBound* bound) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Status::internal(fmt::format("cannot make the folder '{}': {}", folder, error.message()));
  for (const SimulationReport& report : reports) {
    const std::filesystem::path path = std::filesystem::path(folder) / report.policy;
    FOLIOT_RETURN_IF_ERROR(write_file(path.string() + ".json", report_json(report, estimate, bound)));
    FOLIOT_RETURN_IF_ERROR(write_file(path.string() + ".csv", series_csv(report)));
  }
  return Status();
}

Status apply(const SimulateFlags& flags, SimulationFile& file) {
  if (flags.seed) file.options.seed = *flags.seed;
  if (flags.duration) file.options.duration = *flags.duration;
  if (file.options.warm_up >= file.options.duration) {
    return Status::invalid_argument("--duration must be longer than the experiment's warm_up");
  }
  if (flags.policies == std::vector<std::string>{"all"}) {
    file.policies = policy_names();
  } else if (!flags.policies.empty()) {
    file.policies = flags.policies;
  }
  for (const std::string& name : file.policies) FOLIOT_RETURN_IF_ERROR(find_policy(name).status());
  return Status();
}

Result<SimulationReport> run_policy(const SimulationFile& file, const std::string& name,
                                    const std::filesystem::path& log, ProgressBar& bar) {
  const RegisteredPolicy policy = *find_policy(name);
  SimulationOptions options = file.options;
  options.policy = policy.name;
  options.make_policy = policy.make;
  std::optional<Recorder> recorder;
  if (!log.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(auto writer, LogWriter::open({.folder = log / name}));
    options.observer = &recorder.emplace(std::move(writer));
  }
  const TimePoint start = monotonic_now();
  auto report = simulate(options, file.workload, file.profiles, [&](Duration simulated) {
    const double ratio = simulated.to_seconds() / (monotonic_now() - start).to_seconds();
    bar.show(name, fmt::format("{:.0f} s, {:.0f} x real time", simulated.to_seconds(), ratio),
             simulated.to_seconds() / options.duration.to_seconds());
  });
  bar.clear();
  if (report.ok()) report->real = monotonic_now() - start;
  return report;
}

// What came of one policy under the same experiment with one seed after another.
struct Sweep {
  uint64_t requests = 0;
  uint64_t offered = 0;  // in the windows of faults
  uint64_t met = 0;
  uint64_t meetable = 0;
  uint64_t slow_recoveries = 0;  // faults that took 1 s or more
  uint64_t faults = 0;
  std::map<FaultKind, Duration> recovery_max;
  double attainment_min = 1;
  uint64_t worst_seed = 0;
  uint64_t good = 0;
  uint64_t good_apart = 0;  // where each kind of device serves its models alone

  void add(const SimulationReport& report) {
    requests += report.requests;
    good += report.all.good_within;
    if (!report.faults) return;
    const FaultReport& around = *report.faults;
    offered += around.met.offered;
    met += around.met.good;
    meetable += around.meetable.good;
    for (size_t i = 0; i < around.faults.size(); ++i) {
      const Duration recovery = around.recovery(i);
      Duration& longest = recovery_max[around.faults[i].kind];
      longest = std::max(longest, recovery);
      slow_recoveries += recovery >= Duration::seconds(1) ? 1 : 0;
      ++faults;
    }
    if (around.attainment() >= attainment_min) return;
    attainment_min = around.attainment();
    worst_seed = report.seed;
  }
};

std::string sweep_text(const std::string& policy, const Sweep& sweep) {
  const double attainment =
      sweep.meetable == 0 ? 1 : static_cast<double>(sweep.met) / static_cast<double>(sweep.meetable);
  std::string text = fmt::format(
      "{}: {} requests, {} faults; in their windows {} of {} requests were met, {} could have been: {:.3f} %; least "
      "{:.3f} % (seed {}); {} recoveries of 1 s or more\n  longest recovery:",
      policy, sweep.requests, sweep.faults, sweep.met, sweep.offered, sweep.meetable, 100 * attainment,
      100 * sweep.attainment_min, sweep.worst_seed, sweep.slow_recoveries);
  for (const auto& [kind, recovery] : sweep.recovery_max) {
    text += fmt::format(" {} {:.1f} s", to_string(kind), recovery.to_seconds());
  }
  return text + "\n";
}

// What came of devices of several kinds, where nothing fails.
std::string kinds_text(const std::string& policy, const Sweep& sweep) {
  std::string text = fmt::format("{}: {} requests; {} answered in time", policy, sweep.requests, sweep.good);
  if (sweep.good_apart > 0) {
    text += fmt::format(", {} by each kind of device alone: {:.2f} %", sweep.good_apart,
                        100.0 * static_cast<double>(sweep.good) / static_cast<double>(sweep.good_apart));
  }
  return text + "\n";
}

Status run_apart(const SimulationOptions& options, const SimulationFile& file, Sweep& sweep) {
  const auto parts = split_by_kind(options, file.workload);
  if (!parts.ok()) return Status();  // some model or stream is of several
  for (const KindPart& part : *parts) {
    FOLIOT_ASSIGN_OR_RETURN(const SimulationReport report, simulate(part.options, part.workload, file.profiles));
    sweep.good_apart += report.all.good_within;
  }
  return Status();
}

// The checkers of every run end the program at the first broken promise.
Status run_seeds(SimulationFile file, uint64_t seeds) {
  ProgressBar bar("simulating");
  const uint64_t first = file.options.seed;
  for (const std::string& name : file.policies) {
    Sweep sweep;
    for (uint64_t i = 0; i < seeds; ++i) {
      file.options.seed = first + i;
      SimulationOptions options = file.options;
      options.policy = name;
      options.make_policy = find_policy(name)->make;
      FOLIOT_ASSIGN_OR_RETURN(const SimulationReport report, simulate(options, file.workload, file.profiles));
      sweep.add(report);
      if (options.kinds.size() > 1 && !report.faults) FOLIOT_RETURN_IF_ERROR(run_apart(options, file, sweep));
      bar.show(name, fmt::format("seed {}", options.seed), static_cast<double>(i) / static_cast<double>(seeds));
    }
    bar.clear();
    const bool kinds = file.options.kinds.size() > 1 && sweep.faults == 0;
    fmt::print("{}", kinds ? kinds_text(name, sweep) : sweep_text(name, sweep));
    std::fflush(stdout);
  }
  return Status();
}

Result<ClairvoyantBound> bound_of(const SimulationFile& file) {
  ProgressBar bar("bounding");
  auto bound = clairvoyant_bound(file.options, file.workload, file.profiles, {},
                                 [&](double share) { bar.show("clairvoyant bound", "", share); });
  bar.clear();
  return bound;
}

Status run(const SimulateFlags& flags) {
  FOLIOT_ASSIGN_OR_RETURN(SimulationFile file, read_simulation_file(flags.experiment, flags.from));
  FOLIOT_RETURN_IF_ERROR(apply(flags, file));
  if (file.links) {
    if (flags.bound || !flags.output.empty() || !flags.log.empty()) {
      return Status::invalid_argument("--bound, --output and --log need [cluster] protocol = \"direct\"");
    }
    if (!file.workload.pipelines.empty()) {
      return Status::invalid_argument("[[pipelines]] need [cluster] protocol = \"direct\"");
    }
    return simulate_links(file, flags.seeds);
  }
  if (flags.seeds > 1) return run_seeds(std::move(file), flags.seeds);
  if (flags.bound && !file.options.kinds.empty()) {
    return Status::invalid_argument("--bound needs devices of one kind: leave [[cluster.kinds]] out");
  }
  if (flags.bound && !file.workload.pipelines.empty()) {
    return Status::invalid_argument("--bound knows no pipelines: leave [[pipelines]] out");
  }
  std::optional<FluidEstimate> estimate;
  std::optional<ClairvoyantBound> bound;
  if (flags.bound) {
    FOLIOT_ASSIGN_OR_RETURN(bound, bound_of(file));
  }
  ProgressBar bar("simulating");
  std::vector<SimulationReport> reports;
  for (const std::string& name : file.policies) {
    FOLIOT_ASSIGN_OR_RETURN(SimulationReport report, run_policy(file, name, flags.log, bar));
    reports.push_back(std::move(report));
  }
  const std::vector<FluidFlow> flows = fluid_flows(file.workload, file.profiles);
  const bool estimated = !flows.empty() && file.options.kinds.empty() && file.workload.pipelines.empty();
  if (estimated) estimate = fluid_estimate(flows, file.options.devices);
  const FluidEstimate* shown = estimate ? &*estimate : nullptr;
  const ClairvoyantBound* most = bound ? &*bound : nullptr;
  fmt::print("{}", report_table(reports, shown, most));
  if (!reports.empty() && reports.front().dollars_per_hour) {
    fmt::print("devices: {:.2f} dollars per hour\n", *reports.front().dollars_per_hour);
  }
  return flags.output.empty() ? Status() : write_reports(flags.output, reports, shown, most);
}

}  // namespace

void add_simulate_command(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<SimulateFlags>();
  CLI::App& command = *app.add_subcommand("simulate", "Play a workload against policies, in virtual time");
  command.footer(kSimulateFooter);
  CLI::Option* const experiment =
      command.add_option("experiment", flags->experiment, "TOML file")->type_name("EXPERIMENT.toml");
  CLI::Option* const from = command
                                .add_option("--from-log", flags->from.folder,
                                            "Play the requests of a server's log, with the durations measured there")
                                ->type_name("FOLDER");
  command
      .add_option("--pipeline", flags->from.pipelines,
                  "With --from-log: the pipeline.toml of a pipeline that has runs in it; may be repeated")
      ->needs(from)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("FILE");
  command.add_option("--scheduler", flags->policies, "Policies, instead of the experiment's; or all")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("NAME[,NAME...]");
  add_seed_flag(command, flags->seed, "Instead of the experiment's", "the experiment's");
  command
      .add_option("--seeds", flags->seeds,
                  "Run with this many seeds, one after another, and report the effects of faults or, with several "
                  "kinds of device, what each kind answers alone")
      ->check(CLI::PositiveNumber);
  add_duration_flag(command, "duration", flags->duration, "Instead of the experiment's", "the experiment's");
  command.add_flag("--bound", flags->bound,
                   "Also print the clairvoyant bound, which no policy can exceed (takes a while)");
  command.add_option("--output", flags->output, "Write reports and series into this folder")->type_name("DIR");
  command.add_option("--log", flags->log, "Keep a record of every request and action, for explain: in FOLDER/POLICY")
      ->type_name("FOLDER");
  command.callback([flags, experiment, from, &exit_code] {
    if (experiment->empty() && from->empty()) throw CLI::RequiredError("EXPERIMENT.toml or --from-log");
    const Status status = run(*flags);
    if (!status.ok()) fmt::print(stderr, "foliot simulate: {}\n", status.message());
    exit_code = status.ok() ? 0 : 1;
  });
}

}  // namespace foliot
