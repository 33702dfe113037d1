#include "app/commands/simulation_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "answer/pipelines/pipeline_file.h"
#include "control/policies/registry.h"
#include "engine/program/package.h"
#include "foundation/config/price_file.h"
#include "foundation/config/toml_file.h"
#include "foundation/config/toml_reader.h"
#include "load/workload/workload_file.h"
#include "observe/request_log/log.h"
#include "planning/pipelines/logged_workload.h"
#include "virtual/experiments/tuned_pipelines.h"
#include "virtual/world/device_speeds.h"

namespace foliot {
namespace {

Result<ModelProfile> read_package_profile(const std::string& path) {
  FOLIOT_ASSIGN_OR_RETURN(const Package package, open_package(path, WeightsTier::kDisk));
  const Program& program = *package.program;
  return ModelProfile{.name = path,
                      .input_bytes = program.input_bytes(),
                      .output_bytes = program.output_bytes(),
                      .weights_bytes = program.weights_bytes,
                      .load = program.seed_load,
                      .batch_sizes = program.batch_sizes,
                      .exec = program.buckets.front().seed_exec,
                      .operator_ends = program.operator_ends};
}

// Where the cluster's protocols run, too.
void read_links(TomlReader& reader, std::optional<ClusterSimulationOptions>& links) {
  std::string protocol = "direct";
  reader.text("protocol", protocol);
  if (protocol != "direct" && protocol != "links") reader.fail("protocol", "must be \"direct\" or \"links\"");
  if (protocol != "links") return;
  links.emplace();
  reader.whole("frontends", links->frontends, 1, 1000);
  reader.whole("requests_in_flight_max", links->frontend.requests_max, 1, 65536);
  reader.share("cancelled", links->frontend.cancelled);
  reader.share("two_steps", links->frontend.two_steps);
  reader.share("offline", links->frontend.offline);
  reader.share("runs", links->pipeline_share);
  reader.share("element_runs", links->elements_share);
  reader.share("task_calls", links->task_share);
  double tuned_for = 0;
  reader.not_negative("tuned_for", tuned_for);
  if (tuned_for > 0) links->make_scaler = [tuned_for] { return std::make_unique<TunedPipelines>(tuned_for); };
  reader.duration("clock_offset", links->clock_offset);
  reader.whole("clock_drift_ppm", links->clock_drift_per_million, 0, 10'000);
  reader.duration("settle_max", links->settle_max);
}

Status read_kind(TomlReader& reader, SimulationOptions& options) {
  SimulatedKind kind{.name = {}, .page_cache_bytes = options.page_cache_bytes};
  reader.text("name", kind.name);
  if (!is_kind_name(kind.name)) reader.fail("needs a 'name' of letters, digits and .:_-");
  reader.whole("devices", kind.devices, 1, 100'000);
  reader.bytes("page_cache", kind.page_cache_bytes);
  options.kinds.push_back(kind);
  return reader.finish();
}

Status read_prices(TomlReader& reader, std::vector<SimulatedKind>& kinds) {
  std::string file;
  reader.text("prices", file);
  if (file.empty()) return Status();
  const auto prices = read_price_file(std::filesystem::path(reader.file()).parent_path() / file);
  if (!prices.ok()) {
    reader.fail("prices", "are wrong: " + prices.status().message());
    return reader.finish();
  }
  for (SimulatedKind& kind : kinds) {
    const auto price = prices->find(kind.name);
    if (price == prices->end()) reader.fail("prices", fmt::format("lack kind '{}'", kind.name));
    if (price != prices->end()) kind.dollars_per_hour = price->second;
  }
  return Status();
}

Status read_cluster(TomlReader& reader, SimulationFile& file) {
  SimulationOptions& options = file.options;
  read_links(reader, file.links);
  reader.whole("devices", options.devices, 1, 100'000);
  reader.whole("lanes", options.lanes.count, 1, kLanesMax);
  reader.whole("contexts", options.contexts, 1, kContextsMax);
  reader.share("parallel_share", options.lanes.parallel_share);
  reader.bytes("page_size", options.page_bytes);
  reader.bytes("page_cache", options.page_cache_bytes);
  reader.duration("link", options.link);
  reader.duration("link_jitter", options.link_jitter);
  reader.duration("deadline_margin", options.controller.timing.margin_min);
  reader.duration("margin_fixed", options.controller.timing.margin_fixed);
  std::string slack(to_string(options.controller.pipeline_slack));
  reader.text("pipeline_slack", slack);
  if (const auto parsed = parse_pipeline_slack(slack)) {
    options.controller.pipeline_slack = *parsed;
  } else {
    reader.fail("pipeline_slack", fmt::format("is none of shared, split, by_path: '{}'", slack));
  }
  reader.whole("queued_max", options.controller.queued_max, 1);
  reader.whole("infers_outstanding_max", options.controller.infers_outstanding_max, 1, 4096);
  reader.whole("loads_outstanding_max", options.controller.loads_outstanding_max, 1, 4096);
  if (options.page_bytes == 0) reader.fail("page_size", "must be above 0");
  if (reader.has("kinds") && reader.has("devices")) reader.fail("devices", "stands with each of the 'kinds'");
  for (TomlReader& each : reader.tables("kinds")) FOLIOT_RETURN_IF_ERROR(read_kind(each, options));
  FOLIOT_RETURN_IF_ERROR(read_prices(reader, options.kinds));
  if (!options.kinds.empty()) {
    options.devices = 0;
    for (const SimulatedKind& kind : options.kinds) options.devices += kind.devices;
    if (file.links) reader.fail("protocol", "\"links\" has devices of one kind");
  }
  return reader.finish();
}

Status read_noise(TomlReader& reader, NoiseOptions& noise) {
  std::string like;
  reader.text("like", like);
  if (like == "clockwork") noise = NoiseOptions::clockwork();
  if (!like.empty() && like != "clockwork") reader.fail("like", "must be \"clockwork\", or absent");
  reader.share("exec_deviation", noise.exec_deviation);
  reader.share("load_deviation", noise.load_deviation);
  reader.duration("exec_jitter", noise.exec_jitter);
  reader.duration("load_jitter", noise.load_jitter);
  reader.share("outlier_probability", noise.outlier_probability);
  reader.positive("outlier_factor", noise.outlier_factor);
  reader.not_negative("exec_drift", noise.exec_drift);
  reader.positive("exec_drift_max", noise.exec_drift_max);
  reader.duration("copy", noise.copy);
  std::string speeds;
  reader.text("exec_speeds", speeds);
  if (!speeds.empty()) {
    auto read = read_device_speeds((std::filesystem::path(reader.file()).parent_path() / speeds).string());
    if (!read.ok()) reader.fail("exec_speeds", "are wrong: " + read.status().message());
    if (read.ok()) noise.exec_speeds = *std::move(read);
  }
  return reader.finish();
}

std::optional<FaultKind> read_fault_kind(TomlReader& reader, std::string_view key, const std::string& name) {
  const std::optional<FaultKind> kind = parse_fault_kind(name);
  if (!kind) reader.fail(key, "must be kill, freeze, slow, delay, partition, drain, fail or away");
  return kind;
}

void read_failing_actions(TomlReader& reader, Fault& fault) {
  std::vector<std::string> actions;
  reader.texts("actions", actions);
  if (actions.empty()) return;  // both
  fault.loads_fail = std::ranges::count(actions, "load") > 0;
  fault.execs_fail = std::ranges::count(actions, "exec") > 0;
  const bool others = std::ranges::any_of(actions, [](const auto& name) { return name != "load" && name != "exec"; });
  if (others) reader.fail("actions", "must be load, exec or both");
}

Status read_fault(TomlReader& reader, std::vector<Fault>& faults) {
  Fault fault;
  std::string kind;
  reader.text("kind", kind);
  reader.whole("device", fault.device);
  reader.duration("at", fault.at);
  reader.positive("length", fault.length);
  if (reader.ok()) fault.kind = read_fault_kind(reader, "kind", kind).value_or(FaultKind::kKill);
  if (fault.length <= Duration()) reader.fail("needs a length");
  if (fault.kind == FaultKind::kSlow) reader.positive("factor", fault.factor);
  if (fault.kind == FaultKind::kDelay) reader.positive("delay", fault.delay);
  if (fault.kind == FaultKind::kFail) read_failing_actions(reader, fault);
  faults.push_back(fault);
  return reader.finish();
}

Status read_random_faults(TomlReader& reader, RandomFaults& faults) {
  std::vector<std::string> kinds;
  reader.whole("count", faults.count, 1, 1000);
  reader.texts("kinds", kinds);
  reader.positive("length_min", faults.length_min);
  reader.positive("length_max", faults.length_max);
  if (faults.length_max < faults.length_min) reader.fail("length_max", "must not be below length_min");
  if (!kinds.empty()) faults.kinds.clear();
  for (const std::string& kind : kinds) {
    if (const auto parsed = read_fault_kind(reader, "kinds", kind)) faults.kinds.push_back(*parsed);
  }
  return reader.finish();
}

Status read_links_faults(TomlReader& reader, RandomClusterFaults& faults) {
  std::vector<std::string> kinds;
  reader.whole("count", faults.count, 0, 1000);
  reader.texts("kinds", kinds);
  reader.positive("length_min", faults.length_min);
  reader.positive("length_max", faults.length_max);
  if (faults.length_max < faults.length_min) reader.fail("length_max", "must not be below length_min");
  for (const std::string& kind : kinds) {
    const auto parsed = parse_cluster_fault_kind(kind);
    if (parsed) faults.kinds.push_back(*parsed);
    if (!parsed) {
      reader.fail("kinds", "must be reset, partition, one_way, delay, freeze, kill, crash, leave, fail, slow or model");
    }
  }
  return reader.finish();
}

// Over links faults are drawn only.
Status read_faults(TomlReader& reader, SimulationFile& file) {
  SimulationOptions& options = file.options;
  if (file.links) {
    file.links->faults.count = 0;
    if (auto random = reader.table("random_faults")) return read_links_faults(*random, file.links->faults);
    return Status();
  }
  for (TomlReader& fault : reader.tables("faults")) FOLIOT_RETURN_IF_ERROR(read_fault(fault, options.faults));
  if (auto random = reader.table("random_faults")) {
    options.random_faults.count = 1;
    FOLIOT_RETURN_IF_ERROR(read_random_faults(*random, options.random_faults));
  }
  const Status status = check_faults(options.faults, options.devices, options.duration);
  if (!status.ok()) reader.fail(status.message());
  return Status();
}

// Over links there are none.
Status read_targets(TomlReader& reader, SimulationFile& file) {
  if (file.links && reader.has("targets")) reader.fail("targets", "need protocol = \"direct\"");
  for (TomlReader& each : reader.tables("targets")) {
    TargetChange& change = file.options.targets.emplace_back();
    each.duration("at", change.at);
    each.texts("models", change.models);
    each.whole("copies_least", change.target.copies_least);
    each.whole("copies_most", change.target.copies_most);
    each.texts("kinds", change.target.kinds);
    each.whole("batch_most", change.target.batch_most, 1);
    FOLIOT_RETURN_IF_ERROR(each.finish());
    const Status status = check_targets(std::span(&change, 1), file.options, file.workload);
    if (!status.ok()) each.fail(status.message());
    FOLIOT_RETURN_IF_ERROR(each.finish());
  }
  return Status();
}

void read_top(TomlReader& reader, SimulationFile& to) {
  WorkloadRun run;
  read_run(reader, run);
  to.options.seed = run.seed;
  to.options.duration = run.duration;
  to.options.warm_up = run.warm_up;
  to.options.preload = run.preload;
  reader.texts("schedulers", to.policies);
  reader.positive("interval", to.options.interval);
  for (const std::string& name : to.policies) {
    const auto policy = find_policy(name);
    if (!policy.ok()) reader.fail("schedulers", "are wrong: " + policy.status().message());
  }
}

// The requests and the durations of a log.
Status read_log(TomlReader& reader, const SimulatedLog& from, SimulationFile& to) {
  for (const char* key : {"models", "streams", "pipelines", "profiles"}) {
    if (reader.has(key)) reader.fail(key, "are those of the log: leave them out with --from-log");
  }
  if (to.links) reader.fail("protocol", "\"links\" cannot play a log");
  if (!reader.ok()) return reader.finish();
  FOLIOT_ASSIGN_OR_RETURN(const Log log, Log::read(from.folder));
  std::vector<PipelineSpec> pipelines;
  for (const std::filesystem::path& path : from.pipelines) {
    const std::string name = std::filesystem::absolute(path).parent_path().filename().string();
    pipelines.push_back(read_pipeline(name, path));
    FOLIOT_RETURN_IF_ERROR(pipelines.back().status);
  }
  FOLIOT_ASSIGN_OR_RETURN(LoggedWorkload logged,
                          read_logged_workload(log, pipelines, to.options.page_bytes, from.folder.string()));
  to.workload = std::move(logged.workload);
  to.profiles = std::move(logged.profiles);
  to.options.noise.seen_execs = std::move(logged.seen_execs);
  if (!reader.has("duration")) to.options.duration = logged.length;
  if (to.options.lanes.count == 1) to.options.lanes = {.count = logged.lanes, .parallel_share = logged.parallel_share};
  return Status();
}

}  // namespace

ClusterSimulationOptions links_options(const SimulationFile& file, const std::string& policy, uint64_t seed) {
  ClusterSimulationOptions links = *file.links;
  const SimulationOptions& options = file.options;
  links.policy = policy;
  links.make_policy = find_policy(policy)->make;
  links.controller = options.controller;
  links.controller.health = FailureDetectorOptions{.back_off_max = Duration::seconds(8)};
  links.seed = seed;
  links.workers = options.devices;
  links.page_bytes = options.page_bytes;
  links.page_cache_bytes = options.page_cache_bytes;
  links.lanes = options.lanes;
  links.contexts = options.contexts;
  links.noise = options.noise;
  links.network.delay = options.link;
  links.network.jitter = options.link_jitter;
  links.duration = options.duration;
  return links;
}

Result<SimulationFile> read_simulation_file(const std::filesystem::path& file, const SimulatedLog& log) {
  toml::table table;
  if (!file.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(table, read_toml_file(file));
  }
  TomlReader reader(table, file.string());
  SimulationFile result;
  read_top(reader, result);
  if (!reader.ok()) return reader.finish();
  if (auto cluster = reader.table("cluster")) FOLIOT_RETURN_IF_ERROR(read_cluster(*cluster, result));
  if (auto noise = reader.table("noise")) FOLIOT_RETURN_IF_ERROR(read_noise(*noise, result.options.noise));
  if (!log.folder.empty()) FOLIOT_RETURN_IF_ERROR(read_log(reader, log, result));
  FOLIOT_RETURN_IF_ERROR(read_faults(reader, result));
  if (log.folder.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(result.profiles, read_profiles(reader, read_package_profile));
    FOLIOT_ASSIGN_OR_RETURN(result.workload, read_workload(reader, &result.profiles));
  }
  FOLIOT_RETURN_IF_ERROR(read_targets(reader, result));
  FOLIOT_RETURN_IF_ERROR(reader.finish());
  return result;
}

}  // namespace foliot
