#include "app/commands/plan_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "answer/pipelines/pipeline_file.h"
#include "app/commands/flags.h"
#include "foundation/base/units.h"
#include "foundation/config/price_file.h"
#include "foundation/config/toml_file.h"
#include "load/workload/arrival_trace.h"
#include "node/files/target_file.h"
#include "observe/request_log/log.h"
#include "planning/pipelines/coarse_grained.h"
#include "planning/pipelines/confident_plan.h"
#include "planning/pipelines/cost_curve.h"
#include "planning/pipelines/envelope.h"
#include "planning/pipelines/held_out.h"
#include "planning/pipelines/logged_pipeline.h"
#include "planning/pipelines/plan_file.h"
#include "planning/pipelines/planned_pipeline.h"
#include "planning/pipelines/planner.h"
#include "planning/pipelines/profile_file.h"

namespace foliot {
namespace {

constexpr const char* kPlanDescription =
    "Find the cheapest kinds, batch sizes and replicas by which a pipeline keeps a P99\n\n"
    "Replays a trace of arrivals through the pipeline with measured durations, without running it.";

constexpr const char* kPlanFooter =
    R"(What it needs, each a file:

  pipeline.toml   the stages, as `foliot serve` reads it
  trace.csv       an arrival a line, in seconds since the start, ascending: 0.013
  prices.toml     dollars per hour of a device, by kind: cpu = 0.17
  profiles.toml   durations of each stage, by kind and batch size, and the share of queries that visit it:

    [[profile]]
    stage = "fine"
    kind = "cpu"
    batch_sizes = [1, 2, 4]
    durations = ["9ms", "16ms", "31ms"]     # or p50 = [...] and p99 = [...], where they depend on the input
    [visits]
    fine = 0.3

  foliot plan examples/plan/pipeline.toml --trace examples/plan/trace.csv --slo 150ms \
      --prices examples/plan/prices.toml --profiles examples/plan/profiles.toml --output cost.svg

A server that serves the pipeline with --log FOLDER measures all but the prices. Profiles of other kinds and batch
sizes may be given besides:

  foliot plan models/animals/pipeline.toml --from-log log --prices prices.toml

docs/PLANNING.md explains what is found, and what is taken for granted.)";

constexpr uint32_t kCurvePoints = 16;
constexpr uint64_t kVisitSeed = 1;

struct PlanFlags {
  std::filesystem::path pipeline;
  std::string trace;
  std::filesystem::path log;
  std::filesystem::path prices;
  std::filesystem::path profiles;
  std::optional<Duration> slo;
  double attainment = 0.99;
  double confidence = 0;
  double quantile = 0.99;
  std::filesystem::path output;
  std::filesystem::path apply;
  std::filesystem::path save;
};

struct Loaded {
  PlannedPipeline pipeline;
  QueryTrace trace;
  LatencyGoal goal;
  std::string content;              // of the pipeline.toml
  std::vector<std::string> models;  // by stages
};

Result<PlanningInputs> read_inputs(const PlanFlags& flags) {
  PlanningInputs inputs{
      .profiles_file = flags.profiles.string(), .prices_file = flags.prices.string(), .quantile = flags.quantile};
  if (!flags.profiles.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(inputs.profiles, read_profile_file(flags.profiles));
  }
  FOLIOT_ASSIGN_OR_RETURN(KindOffers offers, read_offer_file(flags.prices));
  inputs.prices = std::move(offers.prices);
  inputs.devices = std::move(offers.devices);
  return inputs;
}

Result<Loaded> load_files(const PlanFlags& flags, const PipelineSpec& spec, LatencyGoal goal) {
  FOLIOT_ASSIGN_OR_RETURN(const PlanningInputs inputs, read_inputs(flags));
  FOLIOT_ASSIGN_OR_RETURN(PlannedPipeline pipeline, plan_stages(spec, inputs));
  for (const std::string& stage : stages_without_visits(spec, inputs.profiles)) {
    fmt::print(stderr,
               "warning: stage '{0}' has conditions, and {1} does not say how many queries visit it: it is planned for "
               "all of them. Add [visits] with {0} = SHARE\n",
               stage, inputs.profiles_file);
  }
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<Duration> arrivals, read_arrival_trace(flags.trace));
  QueryTrace trace = QueryTrace::draw(pipeline, arrivals, kVisitSeed);
  return Loaded{std::move(pipeline), std::move(trace), goal, spec.content, {}};
}

// Where the log and the profiles measure the same, the log counts.
Result<Loaded> load_log(const PlanFlags& flags, const PipelineSpec& spec, LatencyGoal goal) {
  const std::string name = flags.log.string();
  FOLIOT_ASSIGN_OR_RETURN(PlanningInputs inputs, read_inputs(flags));
  FOLIOT_ASSIGN_OR_RETURN(const Log log, Log::read(flags.log));
  FOLIOT_ASSIGN_OR_RETURN(LoggedPipeline logged, read_logged_pipeline(spec, log, name));
  for (const std::string& gap : log.gaps()) fmt::print(stderr, "warning: {}\n", gap);
  add_missing_profiles(inputs.profiles, logged.profiles);
  for (const StageSpec& stage : spec.stages) {
    if (!logged.profiles.at(stage.name).kinds.empty()) continue;
    return Status::invalid_argument(
        fmt::format("{}: has less than {} batches of any size of stage '{}' ({}:{}): log more, or give its durations "
                    "with --profiles",
                    name, kLoggedBatchesMin, stage.name, spec.file, stage.line));
  }
  inputs.profiles = logged.profiles;
  inputs.profiles_file = name;
  inputs.visits = logged.known_visits();
  FOLIOT_ASSIGN_OR_RETURN(PlannedPipeline pipeline, plan_stages(spec, inputs));
  QueryTrace trace = logged.trace(pipeline, kVisitSeed);
  return Loaded{std::move(pipeline), std::move(trace), goal, spec.content, {}};
}

Result<Loaded> load(const PlanFlags& flags) {
  const std::filesystem::path folder = std::filesystem::absolute(flags.pipeline).parent_path();
  const PipelineSpec spec = read_pipeline(folder.filename().string(), flags.pipeline);
  FOLIOT_RETURN_IF_ERROR(spec.status);
  const std::optional<Duration> slo = flags.slo ? flags.slo : spec.default_slo;
  if (!slo) {
    return Status::invalid_argument(fmt::format("{}: has no default_slo: give --slo 150ms", flags.pipeline.string()));
  }
  const LatencyGoal goal{*slo, flags.attainment};
  Result<Loaded> loaded = flags.log.empty() ? load_files(flags, spec, goal) : load_log(flags, spec, goal);
  if (!loaded.ok()) return loaded;
  for (const StageSpec& stage : spec.stages) loaded->models.push_back(stage.model);
  return loaded;
}

void print_workload(const Loaded& loaded) {
  const Envelope envelope = traffic_envelope(loaded.trace.arrivals_ns, {loaded.goal.slo});
  fmt::print("{}: {} queries in {}, {:.1f} per second, up to {} within {}\n\n", loaded.pipeline.name,
             loaded.trace.size(), format_duration(loaded.trace.length()), loaded.trace.rate(), envelope.most.front(),
             format_duration(loaded.goal.slo));
}

void print_stages(const PlannedPipeline& pipeline, const Configuration& configuration) {
  size_t stage_width = 5;
  size_t kind_width = 4;
  for (const PlannedStage& stage : pipeline.stages) {
    stage_width = std::max(stage_width, stage.name.size());
    for (const StageKind& kind : stage.kinds) kind_width = std::max(kind_width, kind.kind.size());
  }
  fmt::print("{:{}}  {:>7}  {:{}}  {:>5}  {:>8}  {:>10}  {:>8}\n", "STAGE", stage_width, "VISITED", "KIND", kind_width,
             "BATCH", "REPLICAS", "QUERIES/S", "DOLLARS/H");
  for (size_t i = 0; i < pipeline.stages.size(); ++i) {
    const PlannedStage& stage = pipeline.stages[i];
    const StageConfiguration& here = configuration.stages[i];
    fmt::print("{:{}}  {:>5.1f} %  {:{}}  {:>5}  {:>8}  {:>10.1f}  {:>9.2f}\n", stage.name, stage_width,
               100 * stage.scale_factor, kind_of(stage, here).kind, kind_width, here.batch, here.replicas,
               throughput(stage, here), cost(stage, here));
  }
}

// What the plan is worth on other arrivals.
void print_held_out(const Loaded& loaded) {
  const Result<HeldOut> judged = judge_held_out(loaded.pipeline, loaded.trace, loaded.goal);
  if (!judged.ok()) {
    fmt::print(stderr, "warning: the trace is too short to say what the plan keeps on other arrivals: {}\n",
               judged.status().message());
    return;
  }
  fmt::print("held out: plans for either half of the trace keep {:.2f} % and {:.2f} % of the other half\n",
             100 * judged->attainment[0], 100 * judged->attainment[1]);
  if (judged->least() >= loaded.goal.attainment) return;
  fmt::print(stderr,
             "warning: on other arrivals like these, expect as little as {:.1f} % within {}, not {:g} %: plan for a "
             "longer trace, "
             "a higher --attainment or a shorter --slo\n",
             100 * judged->least(), format_duration(loaded.goal.slo), 100 * loaded.goal.attainment);
}

Status write_file(const char* flag, const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  return file ? Status() : Status::invalid_argument(fmt::format("{}: cannot write '{}'", flag, path.string()));
}

Status draw(const PlanFlags& flags, const Loaded& loaded) {
  const std::vector<CostPoint> curve = cost_curve(loaded.pipeline, loaded.trace, loaded.goal, {}, kCurvePoints);
  FOLIOT_RETURN_IF_ERROR(
      write_file("--output", flags.output,
                 draw_cost_curve(fmt::format("{}: cost over SLO", loaded.pipeline.name), curve, loaded.goal.slo)));
  fmt::print("{}: cost over SLO\n", flags.output.string());
  return Status();
}

// A model of several stages has the replicas of all, on the kinds of all, and the largest batch of them.
Status apply(const PlanFlags& flags, const Loaded& loaded, const Configuration& configuration) {
  NamedTargets targets;
  for (size_t i = 0; i < loaded.models.size(); ++i) {
    const ModelTarget own = target(loaded.pipeline.stages[i], configuration.stages[i]);
    const auto [found, added] = targets.emplace(loaded.models[i], own);
    if (added) continue;
    ModelTarget& all = found->second;
    all.copies_least += own.copies_least;
    all.copies_most += own.copies_most;
    all.batch_most = std::max(all.batch_most, own.batch_most);
    if (all.kinds != own.kinds) all.kinds.insert(all.kinds.end(), own.kinds.begin(), own.kinds.end());
  }
  FOLIOT_RETURN_IF_ERROR(write_file("--apply", flags.apply, target_file_text(targets)));
  fmt::print("{}: targets, for foliot serve or foliot controller --targets\n", flags.apply.string());
  return Status();
}

Status save(const PlanFlags& flags, const Loaded& loaded, const Configuration& configuration) {
  if (loaded.trace.rate() <= 0) {
    return Status::invalid_argument(
        "--save: a tuner needs the rate of the trace, which has queries at one instant only");
  }
  TuningPlan plan = tuning_plan(loaded.pipeline, configuration, loaded.trace);
  plan.content = loaded.content;
  plan.goal = loaded.goal;
  for (size_t i = 0; i < plan.stages.size(); ++i) plan.stages[i].model = loaded.models[i];
  const std::string text = plan_file_text(plan);
  // A folder, which names the pipeline, may have a name that is not UTF-8.
  const Status readable = parse_toml(text, flags.save.string()).status();
  if (!readable.ok()) return readable.with_context("--save: the plan could not be read again");
  FOLIOT_RETURN_IF_ERROR(write_file("--save", flags.save, text));
  fmt::print("{}: the plan, by which a server tunes the pipeline\n", flags.save.string());
  return Status();
}

Status run_plan(const PlanFlags& flags) {
  FOLIOT_ASSIGN_OR_RETURN(const Loaded loaded, load(flags));
  auto planned = plan_monotonely(loaded.pipeline, loaded.trace, loaded.goal);
  if (planned.ok() && flags.confidence > 0) {
    planned = with_confidence(loaded.pipeline, loaded.trace, loaded.goal, *planned, flags.confidence);
  }
  if (!planned.ok()) return planned.status().with_context(flags.pipeline.string());
  print_workload(loaded);
  print_stages(loaded.pipeline, planned->configuration);
  const Estimate& estimate = planned->estimate;
  fmt::print("\npredicted: P50 {}, P99 {}, longest {}; {:.2f} % within {}\n", format_duration(estimate.p50),
             format_duration(estimate.p99), format_duration(estimate.longest), 100 * estimate.attainment(),
             format_duration(loaded.goal.slo));
  if (flags.confidence == 0) print_held_out(loaded);
  fmt::print("cost: {:.2f} dollars per hour", planned->cost);
  const auto coarse = plan_coarse_grained(loaded.pipeline, loaded.trace, loaded.goal.slo, CoarseGrainedRate::kPeak);
  if (coarse.ok())
    fmt::print("; as whole pipelines for the peak: {:.2f}", cost(loaded.pipeline, coarse->configuration));
  fmt::print("\n");
  if (!flags.apply.empty()) FOLIOT_RETURN_IF_ERROR(apply(flags, loaded, planned->configuration));
  if (!flags.save.empty()) FOLIOT_RETURN_IF_ERROR(save(flags, loaded, planned->configuration));
  return flags.output.empty() ? Status() : draw(flags, loaded);
}

// CLI::Range() lets NaN pass.
CLI::Validator number_range(double least, double most) {
  return CLI::Range(least, most) & CLI::Validator(
                                       [](const std::string& text) {
                                         return std::isnan(std::strtod(text.c_str(), nullptr)) ? text + " is no number"
                                                                                               : "";
                                       },
                                       "");
}

}  // namespace

void add_plan_command(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<PlanFlags>();
  CLI::App& command = *app.add_subcommand("plan", kPlanDescription);
  command.footer(kPlanFooter);
  command.add_option("pipeline", flags->pipeline, "A pipeline.toml")->required()->type_name("FILE");
  CLI::Option* const trace = command.add_option("--trace", flags->trace, "Arrivals to plan for")->type_name("FILE");
  CLI::Option* const log =
      command
          .add_option("--from-log", flags->log,
                      "Arrivals, visits and durations of a server's log, in place of --trace and --profiles")
          ->type_name("FOLDER")
          ->excludes(trace);
  command.add_option("--prices", flags->prices, "Dollars per hour, by kind of device")->required()->type_name("FILE");
  CLI::Option* const profiles =
      command.add_option("--profiles", flags->profiles, "Durations of the stages")->type_name("FILE");
  add_duration_flag(command, "slo", flags->slo, "From a query's arrival to its answer", "default_slo of the pipeline");
  command.add_option("--attainment", flags->attainment, "Share of the queries within the SLO")
      ->check(number_range(0.5, 1.0))
      ->capture_default_str();
  command
      .add_option("--confidence", flags->confidence,
                  "Share of other traces of the same arrivals on which the plan is to hold; 0: it is made for this one")
      ->check(number_range(0.0, 1.0))
      ->capture_default_str();
  command.add_option("--quantile", flags->quantile, "Of durations that depend on the input, which to plan for")
      ->check(number_range(0.01, 1.0))
      ->capture_default_str();
  command.add_option("--output", flags->output, "Draw the cost over the SLO, as SVG")->type_name("FILE");
  command
      .add_option("--apply", flags->apply,
                  "Write the plan as targets: `foliot serve`, or `foliot controller`, --targets FILE holds "
                  "to them, and reads them again")
      ->type_name("FILE");
  command
      .add_option("--save", flags->save,
                  "Write the plan, by which servers tune the pipeline: plan.toml beside its pipeline.toml, or in a "
                  "folder of its name under --plans of `foliot controller`")
      ->type_name("FILE");
  command.callback([flags, trace, log, profiles, &exit_code] {
    if (log->empty() && trace->empty()) throw CLI::RequiredError("--trace or --from-log");
    if (log->empty() && profiles->empty()) throw CLI::RequiredError("--profiles or --from-log");
    const Status status = run_plan(*flags);
    if (!status.ok()) fmt::print(stderr, "foliot plan: {}\n", status.message());
    exit_code = status.ok() ? 0 : 1;
  });
}

}  // namespace foliot
