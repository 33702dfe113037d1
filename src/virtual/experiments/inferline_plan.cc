// InferLine's planner beside whole pipelines that are replicated (Figures 4.5 and 4.9): what a
// plan costs that was made for one trace, and how it does on another one of the same kind.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "planning/pipelines/coarse_grained.h"
#include "planning/pipelines/planner.h"
#include "virtual/experiments/experiment.h"
#include "virtual/experiments/inferline_pipelines.h"

namespace foliot {
namespace {

constexpr LatencyGoal kPlanGoal{Duration::milliseconds(150)};

QueryTrace gamma_trace(const PlannedPipeline& pipeline, double rate, double variation, Duration length, uint64_t seed) {
  Random random(seed);
  std::vector<Duration> arrivals;
  for (Duration at; at < length; at += Duration::from_seconds(random.gamma_with_variation(variation) / rate)) {
    arrivals.push_back(at);
  }
  return QueryTrace::draw(pipeline, arrivals, seed);
}

struct PlanCell {
  const PlannedPipeline& pipeline;
  double rate = 0;
  double variation = 1;
  Duration slo;
};

class PlanExperiment {
 public:
  explicit PlanExperiment(ExperimentRun& run) : run_(run) {}

  Status measure(const PlanCell& cell) {
    const Duration length = run_.duration().value_or(run_.size(Duration::seconds(1200), Duration::seconds(60)));
    const QueryTrace sample = gamma_trace(cell.pipeline, cell.rate, cell.variation, length, 2 * run_.seed());
    const QueryTrace live = gamma_trace(cell.pipeline, cell.rate, cell.variation, length, 2 * run_.seed() + 1);
    const LatencyGoal goal{cell.slo, kPlanGoal.attainment};
    FOLIOT_ASSIGN_OR_RETURN(const PipelinePlan planned, plan_pipeline(cell.pipeline, sample, goal));
    add(cell, live, "inferline", planned.configuration);
    const auto add_coarse = [&](const char* name, CoarseGrainedRate rate, CoarseGrainedUnit unit) {
      const auto coarse = plan_coarse_grained(cell.pipeline, sample, cell.slo, rate, unit);
      if (coarse.ok()) add(cell, live, name, coarse->configuration);
      return coarse.status();
    };
    FOLIOT_RETURN_IF_ERROR(add_coarse("cg-mean", CoarseGrainedRate::kMean, CoarseGrainedUnit::kPipelined));
    FOLIOT_RETURN_IF_ERROR(add_coarse("cg-peak", CoarseGrainedRate::kPeak, CoarseGrainedUnit::kPipelined));
    FOLIOT_RETURN_IF_ERROR(add_coarse("cg-peak one batch", CoarseGrainedRate::kPeak, CoarseGrainedUnit::kOneBatch));
    return Status();
  }

  // The cell in which `rival` costs most, compared with a plan that meets the goal.
  void find_best(const std::string& rival) {
    double best = 0;
    ResultTable::Row best_row;
    for (const ResultTable::Row& row : run_.table("results").rows()) {
      if (row.at("system") != "inferline" || row.at("attainment").get<double>() < kPlanGoal.attainment) continue;
      ResultTable::Row other{{"system", rival}};
      for (const char* key : {"pipeline", "rate", "variation", "slo_ms"}) other[key] = row.at(key);
      const double ratio = run_.table("results").value(other, "cost") / row.at("cost").get<double>();
      if (ratio <= best) continue;
      best = ratio;
      best_row = row;
    }
    if (best_row.is_null()) return;
    run_.find({"cost of " + rival + " over the plan's, best cell", "up to 7.6x", ">= 7.6x, attainment >= 99 %",
               fmt::format("{:.1f}x ({}, {} q/s, variation {}, SLO {} ms), attainment {:.2f} %", best,
                           best_row.at("pipeline").get<std::string>(), best_row.at("rate").get<double>(),
                           best_row.at("variation").get<double>(), best_row.at("slo_ms").get<double>(),
                           100 * best_row.at("attainment").get<double>()),
               best >= 7.6 && best_row.at("attainment").get<double>() >= kPlanGoal.attainment});
  }

  void find_attainment() {
    double least = 1;
    size_t plans = 0;
    size_t met = 0;
    for (const ResultTable::Row& row : run_.table("results").rows()) {
      if (row.at("system") != "inferline") continue;
      const double attainment = row.at("attainment").get<double>();
      least = std::min(least, attainment);
      ++plans;
      met += attainment >= kPlanGoal.attainment ? 1 : 0;
    }
    run_.find({"plans that meet the P99 on a trace that they were not made for", "all", "all",
               fmt::format("{} of {}, least attainment {:.2f} %", met, plans, 100 * least), met == plans});
  }

 private:
  void add(const PlanCell& cell, const QueryTrace& live, const std::string& system,
           const Configuration& configuration) {
    const Estimate estimate = Estimator(cell.pipeline, live, {cell.slo}).estimate(configuration);
    std::string text;
    for (size_t i = 0; i < configuration.stages.size(); ++i) {
      const StageConfiguration& stage = configuration.stages[i];
      text += fmt::format("{}{} {}x{} b{}", i == 0 ? "" : "; ", cell.pipeline.stages[i].name, stage.replicas,
                          kind_of(cell.pipeline.stages[i], stage).kind, stage.batch);
    }
    run_.table("results").add({{"pipeline", cell.pipeline.name},
                               {"rate", cell.rate},
                               {"variation", cell.variation},
                               {"slo_ms", cell.slo.to_milliseconds()},
                               {"system", system},
                               {"cost", cost(cell.pipeline, configuration)},
                               {"offered", estimate.queries},
                               {"attainment", estimate.attainment()},
                               {"p99_ms", estimate.p99.to_milliseconds()},
                               {"configuration", text}});
  }

  ExperimentRun& run_;
};

}  // namespace

Status run_inferline_plan(ExperimentRun& run) {
  PlanExperiment experiment(run);
  const std::vector<PlannedPipeline> pipelines = inferline_pipelines();
  const auto rates = run.size<std::vector<double>>({50, 100, 150, 200, 300}, {100});
  for (const PlannedPipeline& pipeline : pipelines) {
    for (const double rate : rates) {
      for (const double variation : {1.0, 2.0}) {
        FOLIOT_RETURN_IF_ERROR(experiment.measure({pipeline, rate, variation, kPlanGoal.slo}));
      }
    }
  }
  // Figure 4.9.
  const auto slos = run.size<std::vector<int64_t>>({100, 200, 250, 300, 400, 500}, {300});
  for (const int64_t slo : slos) {
    for (const double rate : run.size<std::vector<double>>({50, 100, 200}, {100})) {
      for (const double variation : {1.0, 2.0}) {
        FOLIOT_RETURN_IF_ERROR(experiment.measure({pipelines[2], rate, variation, Duration::milliseconds(slo)}));
      }
    }
  }
  experiment.find_best("cg-peak");
  experiment.find_best("cg-peak one batch");
  experiment.find_attainment();
  return Status();
}

}  // namespace foliot
