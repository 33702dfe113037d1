// How close InferLine's estimator comes to the system that it stands for (Figure 4.8), and the
// pipelines and profiles of Figures 4.2 and 4.3.
//
// A plan is played by the controller and the workers' logic that serve, under policy `inferline`:
// each replica is a device of a kind of its own stage, so targets pin it. The estimator gets the
// queries that the controller received, with the visits that they made there.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foundation/core/stage_visit.h"
#include "planning/pipelines/planner.h"
#include "virtual/experiments/experiment.h"
#include "virtual/experiments/inferline_pipelines.h"
#include "virtual/experiments/inferline_traces.h"

namespace foliot {
namespace {

constexpr uint64_t kWeights = uint64_t{16} << 20;  // one page

// Records when runs came, which stages they visited, and how long they took.
class RunWatch : public Observer {
 public:
  void on_run(const Request& request, const PipelineInfo* /*pipeline*/, TimePoint /*now*/) override {
    positions_[request.id.value()] = trace.arrivals_ns.size();
    trace.arrivals_ns.push_back(request.arrival.nanoseconds());
    trace.visits.push_back(0);
    latencies.emplace_back();
  }
  void on_request(const Request& request, TimePoint /*now*/) override {
    const std::optional<uint32_t> stage = visit_slot(request.id);
    const auto run = stage ? positions_.find(run_of(request.id).value()) : positions_.end();
    if (run != positions_.end()) trace.visits[run->second] |= VisitSet{1} << *stage;
  }
  void on_run_over(const Completion& completion, TimePoint /*now*/) override {
    const auto run = positions_.find(completion.id.value());
    if (run == positions_.end()) return;
    latencies[run->second] = completion.finished - completion.arrival;
    positions_.erase(run);
  }

  Duration quantile(double share) const {
    std::vector<Duration> sorted = latencies;
    std::sort(sorted.begin(), sorted.end());
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
    return sorted[std::max<size_t>(rank, 1) - 1];
  }

  QueryTrace trace;  // in the order of arrival
  std::vector<Duration> latencies;

 private:
  std::unordered_map<uint64_t, size_t> positions_;  // of runs that are not over
};

// The stages of a plan as models, each on a kind of device of its own.
struct PlayedPlan {
  Workload workload;
  ProfileTable profiles;
  SimulationOptions options;
};

PipelineLoad::Stage load_of(const PlannedPipeline& pipeline, const PlannedStage& stage) {
  PipelineLoad::Stage load{.name = stage.name, .models = stage.name, .share = stage.probability};
  const auto name = [&](uint32_t position) { return pipeline.stages[position].name; };
  std::vector<uint32_t> needed;
  for (const std::vector<uint32_t>& need : stage.needs) needed.push_back(need.front());
  for (const uint32_t each : needed) load.after.push_back(name(each));
  // What it waits for and does not need: the first that was visited, or else one that always is.
  for (const uint32_t parent : stage.parents) {
    if (std::find(needed.begin(), needed.end(), parent) == needed.end()) load.first_of.push_back(name(parent));
  }
  if (!load.first_of.empty()) load.first_of.push_back(load.after.front());
  return load;
}

PlayedPlan played(const PlannedPipeline& pipeline, const Configuration& plan, const TraceArrivals& arrivals) {
  PlayedPlan to;
  PipelineLoad& load = to.workload.pipelines.emplace_back();
  load.name = pipeline.name;
  for (size_t i = 0; i < pipeline.stages.size(); ++i) {
    const PlannedStage& stage = pipeline.stages[i];
    const StageKind& kind = kind_of(stage, plan.stages[i]);
    ModelProfile profile{
        .name = stage.name, .weights_bytes = kWeights, .load = Duration::milliseconds(10), .batch_sizes = {}};
    for (uint32_t rows = 1; rows <= plan.stages[i].batch; ++rows) {
      profile.batch_sizes.push_back(rows);
      profile.exec.push_back(Duration::nanoseconds(kind.durations_ns[rows]));
    }
    FOLIOT_CHECK(to.profiles.add(std::move(profile)).ok());
    const std::string device = fmt::format("{}:{}", kind.kind, stage.name);
    to.workload.groups.push_back(
        {.name = stage.name, .profile = stage.name, .runs_on = {{.kind = device, .profile = ""}}});
    to.options.kinds.push_back({.name = device, .devices = plan.stages[i].replicas, .page_cache_bytes = kWeights});
    to.options.targets.push_back(
        {.at = Duration(), .models = {stage.name}, .target = {.copies_least = plan.stages[i].replicas}});
    load.stages.push_back(load_of(pipeline, stage));
  }
  to.options.devices = 0;
  for (const SimulatedKind& kind : to.options.kinds) to.options.devices += kind.devices;
  Stream stream{.name = "queries", .models = {}, .pipeline = pipeline.name};
  stream.best_effort = true;  // none is refused
  stream.arrivals.kind = ArrivalKind::kReplay;
  for (const Duration at : arrivals.live) stream.arrivals.instants.push_back(at + Duration::seconds(2));
  to.options.duration = stream.arrivals.instants.back() + Duration::seconds(1);
  to.workload.streams.push_back(std::move(stream));
  return to;
}

struct EstimateCell {
  const PlannedPipeline& pipeline;
  Duration slo;
};

Status measure(ExperimentRun& run, const EstimateCell& cell) {
  const double length = run.duration().value_or(run.size(Duration::seconds(600), Duration::seconds(30))).to_seconds();
  const TunedTrace trace{"150, variation 2", {steady(150, length, 2), steady(150, length, 2)}, 1};
  const TraceArrivals arrivals = draw_arrivals(trace, 1, run.seed());
  const LatencyGoal goal{cell.slo};
  const QueryTrace sample = QueryTrace::draw(cell.pipeline, arrivals.planned, run.seed());
  FOLIOT_ASSIGN_OR_RETURN(const PipelinePlan plan, plan_pipeline(cell.pipeline, sample, goal));
  const PlayedPlan play = played(cell.pipeline, plan.configuration, arrivals);
  for (const char* name : {"inferline", "foliot"}) {
    FOLIOT_ASSIGN_OR_RETURN(const RegisteredPolicy policy, find_policy(name));
    RunWatch watch;
    SimulationOptions options = play.options;
    options.policy = policy.name;
    options.make_policy = policy.make;
    options.seed = run.seed();
    options.observer = &watch;
    FOLIOT_RETURN_IF_ERROR(simulate(options, play.workload, play.profiles).status());
    if (watch.trace.size() == 0) return Status::internal("the simulation has no runs");
    const Estimate estimate = Estimator(cell.pipeline, watch.trace, goal).estimate(plan.configuration);
    uint64_t met = 0;
    for (const Duration latency : watch.latencies) met += latency <= cell.slo ? 1 : 0;
    const double simulated = watch.quantile(0.99).to_milliseconds();
    run.table("results").add({{"pipeline", cell.pipeline.name},
                              {"slo_ms", cell.slo.to_milliseconds()},
                              {"policy", policy.name},
                              {"offered", watch.trace.size()},
                              {"attainment", static_cast<double>(met) / static_cast<double>(watch.trace.size())},
                              {"estimated_attainment", estimate.attainment()},
                              {"estimated_p50_ms", estimate.p50.to_milliseconds()},
                              {"simulated_p50_ms", watch.quantile(0.5).to_milliseconds()},
                              {"estimated_p99_ms", estimate.p99.to_milliseconds()},
                              {"simulated_p99_ms", simulated},
                              {"error", estimate.p99.to_milliseconds() / simulated - 1}});
  }
  return Status();
}

void add_profiles(ExperimentRun& run, const PlannedPipeline& pipeline) {
  for (const PlannedStage& stage : pipeline.stages) {
    std::string after;
    for (const uint32_t parent : stage.parents) {
      after += fmt::format("{}{}", after.empty() ? "" : ", ", pipeline.stages[parent].name);
    }
    for (const StageKind& kind : stage.kinds) {
      for (const uint32_t batch : kind.batch_sizes) {
        run.table("profiles")
            .add({{"pipeline", pipeline.name},
                  {"stage", stage.name},
                  {"after", after},
                  {"visited", stage.scale_factor},
                  {"kind", kind.kind},
                  {"batch", batch},
                  {"latency_ms", static_cast<double>(kind.durations_ns[batch]) / 1e6},
                  {"queries_per_second", kind.throughput(batch)}});
      }
    }
  }
}

}  // namespace

Status run_inferline_estimate(ExperimentRun& run) {
  const std::vector<PlannedPipeline> pipelines = inferline_pipelines();
  for (const PlannedPipeline& pipeline : pipelines) {
    add_profiles(run, pipeline);
    for (const int64_t slo : run.size<std::vector<int64_t>>({150, 300}, {150})) {
      FOLIOT_RETURN_IF_ERROR(measure(run, {pipeline, Duration::milliseconds(slo)}));
    }
  }
  for (const char* policy : {"inferline", "foliot"}) {
    double largest = 0;
    for (const ResultTable::Row& row : run.table("results").rows()) {
      if (row.at("policy") == policy) largest = std::max(largest, std::abs(row.at("error").get<double>()));
    }
    const bool has_goal = std::string_view(policy) == "inferline";
    run.find({fmt::format("P99 estimated against simulated under {}, largest error", policy), "close",
              has_goal ? "within 5 %" : "-", fmt::format("{:.1f} %", 100 * largest),
              has_goal ? std::optional(largest <= 0.05) : std::nullopt});
  }
  return Status();
}

}  // namespace foliot
