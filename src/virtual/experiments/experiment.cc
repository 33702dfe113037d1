#include "virtual/experiments/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <utility>

#include "foundation/platform/clock.h"

namespace foliot {
namespace {

using Row = ResultTable::Row;

std::string describe(const std::string& policy, const Row& cell) {
  std::string text = policy;
  for (const auto& [key, value] : cell.items()) text += fmt::format(", {} {}", key, value.dump());
  return text;
}

Row row_of(const SimulationReport& report, const RequestTally& tally) {
  Row row{{"offered_rate", static_cast<double>(tally.offered) / report.measured.to_seconds()},
          {"goodput", static_cast<double>(tally.good_within) / report.measured.to_seconds()},
          {"attainment", tally.attainment()},
          {"offered", tally.offered},
          {"mispredicted", tally.mispredicted},
          {"cold_starts", tally.cold_starts}};
  for (const Refusal reason : {Refusal::kUnmeetable, Refusal::kOverload, Refusal::kExpired, Refusal::kLate}) {
    const auto found = tally.missed.find(reason);
    row[fmt::format("missed_{}", to_string(reason))] = found == tally.missed.end() ? 0 : found->second;
  }
  for (const auto& [name, quantile] : {std::pair{"p1", 0.01},
                                       {"p10", 0.1},
                                       {"p25", 0.25},
                                       {"p50", 0.5},
                                       {"p75", 0.75},
                                       {"p90", 0.9},
                                       {"p99", 0.99},
                                       {"p99.9", 0.999},
                                       {"p99.99", 0.9999}}) {
    row[fmt::format("latency_ms_{}", name)] = tally.latency.quantile(quantile).to_milliseconds();
  }
  row["latency_ms_max"] = tally.latency.max().to_milliseconds();
  return row;
}

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  return file ? Status() : Status::invalid_argument(fmt::format("cannot write '{}'", path));
}

}  // namespace

std::optional<bool> verdict(bool met, std::initializer_list<double> figures) {
  const bool known = std::none_of(figures.begin(), figures.end(), [](double figure) { return std::isnan(figure); });
  return known ? std::optional(met) : std::nullopt;
}

ExperimentRun::ExperimentRun(std::string name, ExperimentOptions options)
    : name_(std::move(name)), options_(std::move(options)), begin_(monotonic_now()) {}

Result<SimulationReport> ExperimentRun::simulate(const RegisteredPolicy& policy, SimulationOptions setting,
                                                 const Workload& workload, const Row& cell) {
  setting.policy = policy.name;
  setting.make_policy = policy.make;
  setting.seed = options_.seed;
  shorten(setting);
  const TimePoint begin = monotonic_now();
  const auto progress = [&](Duration simulated) {
    if (!options_.progress) return;
    const double share = simulated.to_seconds() / setting.duration.to_seconds();
    const double speed = simulated.to_seconds() / (monotonic_now() - begin).to_seconds();
    options_.progress(fmt::format("{}: {:.0f} x real time", describe(policy.name, cell), speed),
                      (static_cast<double>(simulated_) + share) / static_cast<double>(expected_));
  };
  auto report = foliot::simulate(setting, workload, ProfileTable::v100(), progress);
  ++simulated_;
  if (report.ok()) report->real = monotonic_now() - begin;
  return report;
}

// To the duration that was asked for, with as large a share of it for the warm-up.
void ExperimentRun::shorten(SimulationOptions& setting) const {
  if (!options_.duration) return;
  setting.warm_up = setting.warm_up.scaled(options_.duration->to_seconds() / setting.duration.to_seconds());
  setting.duration = *options_.duration;
}

Result<ClairvoyantBound> ExperimentRun::clairvoyant(SimulationOptions setting, const Workload& workload,
                                                    const Row& cell) {
  setting.seed = options_.seed;
  shorten(setting);
  const auto progress = [&](double share) {
    if (!options_.progress) return;
    options_.progress(describe("clairvoyant bound", cell),
                      (static_cast<double>(simulated_) + share) / static_cast<double>(expected_));
  };
  auto bound = clairvoyant_bound(setting, workload, ProfileTable::v100(), {}, progress);
  ++simulated_;
  return bound;
}

Result<SimulationReport> ExperimentRun::measure(const RegisteredPolicy& policy, const SimulationOptions& setting,
                                                const Workload& workload, const Row& cell,
                                                const GoodputEstimates& estimates, std::optional<double> bound) {
  FOLIOT_ASSIGN_OR_RETURN(SimulationReport report, simulate(policy, setting, workload, cell));
  const auto add = [&](const RequestTally& tally) {
    const auto estimate = estimates.find(tally.name);
    Row row{{"policy", policy.name}};
    for (const auto& [key, value] : cell.items()) row[key] = value;
    row["group"] = tally.name;
    row["estimate"] = estimate == estimates.end() ? Row() : Row(estimate->second);
    row["bound"] = bound && tally.name == report.all.name ? Row(*bound) : Row();
    row.update(row_of(report, tally));
    row["batch_size_mean"] = report.batch_size_mean();
    row["device_busy"] = report.device_busy();
    row["load_busy"] = report.load_time.to_seconds() / (report.measured.to_seconds() * report.devices);
    row["requests_per_real_second"] = report.requests_per_real_second();
    table("results").add(std::move(row));
  };
  add(report.all);
  if (report.groups.size() > 1) {
    for (const RequestTally& group : report.groups) add(group);
  }
  return report;
}

Status ExperimentRun::compare(const SimulationOptions& setting, const Workload& workload, const Row& cell,
                              const GoodputEstimates& estimates, std::optional<double> bound) {
  for (const RegisteredPolicy& policy : policies()) {
    FOLIOT_RETURN_IF_ERROR(measure(policy, setting, workload, cell, estimates, bound).status());
  }
  return Status();
}

void ExperimentRun::add_series(const Workload& workload, const SimulationReport& report) {
  const double seconds = report.interval.to_seconds();
  const auto add = [&](const SimulationInterval& row, const std::string& group, const IntervalTally& tally) {
    table("series").add({{"policy", report.policy},
                         {"begin_s", row.begin.to_seconds()},
                         {"group", group},
                         {"offered_rate", static_cast<double>(tally.offered) / seconds},
                         {"goodput", static_cast<double>(tally.good) / seconds},
                         {"missed_rate", static_cast<double>(tally.missed) / seconds},
                         {"cold_start_rate", static_cast<double>(tally.cold_starts) / seconds},
                         {"latency_ms_p50", tally.latency_p50.to_milliseconds()},
                         {"latency_ms_p99", tally.latency_p99.to_milliseconds()},
                         {"latency_ms_max", tally.latency_max.to_milliseconds()},
                         {"batch_size_mean", row.batch_size_mean},
                         {"active_models", row.active_models},
                         {"cold_models", row.cold_models},
                         {"device_busy", row.device_busy},
                         {"load_busy", row.load_busy}});
  };
  for (const SimulationInterval& row : report.series) {
    add(row, "all", row.all);
    if (row.groups.size() == 1) continue;
    for (size_t i = 0; i < row.groups.size(); ++i) add(row, workload.groups[i].name, row.groups[i]);
  }
}

double ExperimentRun::result(const std::string& policy, Row cell, const std::string& column) {
  if (!cell.contains("group")) cell["group"] = "all";
  cell["policy"] = policy;
  return table("results").value(cell, column);
}

Status ExperimentRun::write(const std::string& folder) {
  Row json{{"experiment", name_},
           {"quick", options_.quick},
           {"seed", options_.seed},
           {"real_seconds", (monotonic_now() - begin_).to_seconds()}};
  for (const Finding& finding : findings_) {
    json["findings"].push_back(
        {{"what", finding.what}, {"paper", finding.paper}, {"goal", finding.goal}, {"here", finding.here}});
    if (finding.met) json["findings"].back()["met"] = *finding.met;
  }
  for (const auto& [name, table] : tables_) {
    json["tables"][name] = table.rows();
    FOLIOT_RETURN_IF_ERROR(write_file(fmt::format("{}/{}_{}.csv", folder, name_, name), table.to_csv()));
  }
  return write_file(fmt::format("{}/{}.json", folder, name_), json.dump(1) + "\n");
}

ModelGroup resnet50(std::string name, uint32_t count, std::optional<Duration> slo) {
  return {.name = std::move(name), .profile = "resnet50", .count = count, .slo = slo};
}

Workload mixed_models(uint32_t copies, Duration slo, const Stream& stream) {
  Workload workload;
  const std::vector<ModelProfile>& profiles = ProfileTable::v100().profiles();
  for (const ModelProfile& profile : profiles) {
    workload.groups.push_back({.name = profile.name, .profile = profile.name, .count = copies, .slo = slo});
    workload.streams.push_back(stream);
    workload.streams.back().name = profile.name;
    workload.streams.back().models = {profile.name};
  }
  return scaled(workload, 1.0 / static_cast<double>(profiles.size()));
}

Workload scaled(Workload workload, double factor) {
  for (Stream& stream : workload.streams) {
    stream.arrivals.rate *= factor;
    stream.arrivals.ramp_rate *= factor;
  }
  return workload;
}

FluidEstimate estimate_of(const Workload& workload, uint32_t devices) {
  return fluid_estimate(fluid_flows(workload, ProfileTable::v100()), devices);
}

GoodputEstimates goodput_estimates(const Workload& workload, uint32_t devices) {
  const FluidEstimate estimate = estimate_of(workload, devices);
  return {{"all", estimate.attainment * estimate.rate / estimate.rate_scale}};
}

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all{
      {.name = "figure_5",
       .summary = "15 x ResNet-50 with 16 users each on one GPU: goodput by SLO",
       .run = run_figure_5},
      {.name = "figure_6",
       .summary = "3,601 x ResNet-50 on one GPU, one more of them active each second",
       .run = run_figure_6},
      {.name = "figure_7", .summary = "six GPUs: how short the SLO may be", .run = run_figure_7},
      {.name = "figure_8", .summary = "six GPUs: users with an SLO beside users without", .run = run_figure_8},
      {.name = "figure_9",
       .summary = "4,026 models on 24 GPUs under a trace like that of Azure Functions; Figure 10 too",
       .run = run_figure_9,
       .policies = {"clockwork", "foliot"}},
      {.name = "memory_starved",
       .summary = "600 models on four GPUs that hold only some of them; capacity at 99 % attainment",
       .run = run_memory_starved},
      {.name = "overload", .summary = "half again as much as can be served, in several shapes", .run = run_overload},
      {.name = "bounds",
       .summary = "29 workloads on four GPUs short of memory: how far each policy is from the clairvoyant bound",
       .run = run_bounds,
       .policies = {"foliot", "clockwork", "edf", "flex", "deferred"}},
      {.name = "overlap",
       .summary = "two to four models on one GPU: operator groups against one query at a time (Abacus)",
       .run = run_overlap,
       .policies = {"overlap", "fcfs", "sjf", "edf"}},
      {.name = "overlap_cluster",
       .summary = "four models on 16 GPUs under a trace like that of Azure Functions (Abacus, Figure 22)",
       .run = run_overlap_cluster,
       .policies = {"overlap", "clockwork", "foliot"}},
      {.name = "lanes_64",
       .summary = "200 models on 64 cores: a width for each batch against cores that are divided once",
       .run = run_lanes_64,
       .policies = {"foliot", "clockwork", "edf"}},
      {.name = "inferline_plan",
       .summary = "four pipelines: InferLine's planner against whole pipelines that are replicated",
       .run = run_inferline_plan},
      {.name = "inferline_tune",
       .summary = "spikes and ramps: InferLine's tuner against AutoScale of whole pipelines",
       .run = run_inferline_tune},
      {.name = "inferline_estimate",
       .summary = "four pipelines: the P99 that InferLine's estimator predicts against the simulated one",
       .run = run_inferline_estimate},
      {.name = "inferline_attribution",
       .summary = "a ramp: what InferLine's planner and tuner contribute",
       .run = run_inferline_attribution},
      {.name = "inferline_ds2",
       .summary = "bursts and a ramp: InferLine's tuner against DS2",
       .run = run_inferline_ds2},
      {.name = "inferline_shapes",
       .summary = "steps, ramps and spikes: the tuners of a server against what capacity needs",
       .run = run_inferline_shapes},
      {.name = "infaas_production",
       .summary = "22 tasks on CPUs, Inferentia and GPUs under a day with spikes (INFaaS, Figure 5)",
       .run = run_infaas_production},
      {.name = "infaas_scaling",
       .summary = "ResNet-50 under three loads: which variants, at what cost (INFaaS, Figure 6)",
       .run = run_infaas_scaling},
      {.name = "infaas_sharing", .summary = "two models share GPUs (INFaaS, Figure 7)", .run = run_infaas_sharing},
      {.name = "infaas_overload",
       .summary = "accuracy scaling at 1 to 3 times the capacity, against fixed variants (Proteus)",
       .run = run_infaas_overload},
  };
  return all;
}

}  // namespace foliot
