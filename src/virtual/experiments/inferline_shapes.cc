// The tuners of a server beside what capacity needs: steady arrivals, steps, ramps and spikes of three pipelines, with
// the copies that a server's tuners want, by plans with a confidence.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "foundation/base/random.h"
#include "foundation/core/pipeline_info.h"
#include "planning/pipelines/pipeline_tuners.h"
#include "planning/pipelines/planner.h"
#include "planning/pipelines/replan_tuner.h"
#include "planning/pipelines/tuning_plan.h"
#include "virtual/experiments/experiment.h"
#include "virtual/experiments/inferline_pipelines.h"
#include "virtual/experiments/tuning_comparison.h"

namespace foliot {
namespace {

constexpr LatencyGoal kShapeGoal{Duration::milliseconds(150)};
constexpr double kRate = 150;  // planned
constexpr double kConfidence = 0.95;
// A copy serves so long after it is wanted. A server looks at its tuners so often.
constexpr TunedRunOptions kServer{
    .activation = Duration::seconds(1), .tick = Duration::milliseconds(100), .late = LateQueries::kRefused};
constexpr const char* kSteady = "steady";
// On a plan without a confidence, without its envelope, as a server's was before decision 0296.
constexpr const char* kLastMinute = "replan of the last minute";

// The tuners of a server, of one pipeline, as one that a trace can drive.
class ServedTuner final : public ReplicaTuner {
 public:
  ServedTuner(const TuningComparison& compared, const TunerMethod& method) : tuners_(method) {
    TunedPipeline tuned{PipelineInfo()};
    tuned.id = PipelineId(1);
    tuned.name = compared.pipeline().name;
    std::map<std::string, SavedPlan> plans;
    TuningPlan& plan = plans[tuned.name].plan;
    plan = tuning_plan(compared.pipeline(), compared.plan(), compared.sample());
    plan.goal = compared.goal();
    for (uint32_t i = 0; i < plan.stages.size(); ++i) {
      TuningPlan::Stage& stage = plan.stages[i];
      stage.model = stage.name;
      const PlannedStage& planned = compared.pipeline().stages[i];
      tuned.stages.push_back({stage.name, stage.model, ModelId(i), {planned.parents, planned.needs}});
      replicas_.push_back(stage.replicas);
      up_[stage.kind] = kPlannedReplicasMax;
    }
    tuners_.set_plans(std::move(plans));
    tuners_.add(std::move(tuned));
  }

  bool arrive(TimePoint now) override {
    tuners_.arrive(PipelineId(1), now);
    return false;
  }
  bool tick(TimePoint now) override {
    const PipelineTuners::Step step = tuners_.step(up_, now);
    std::vector<uint32_t> wanted;
    for (const PipelineTuners::StageReplicas& stage : step.replicas) wanted.push_back(stage.wanted);
    const bool changed = wanted != replicas_;
    replicas_ = std::move(wanted);
    return changed;
  }
  const std::vector<uint32_t>& replicas() const override { return replicas_; }

 private:
  PipelineTuners tuners_;
  std::map<std::string, uint32_t> up_;
  std::vector<uint32_t> replicas_;
};

// 300 s each, after 300 s that are planned for. The most of a step or a ramp is 1.5 to 4 times the rate, of a spike of
// 10 s up to 2.2 times.
std::vector<TunedTrace> shapes(uint64_t seed) {
  Random random(seed);
  const double step = kRate * (1.5 + 2.5 * random.uniform());
  const double ramp = kRate * (1.5 + 2.5 * random.uniform());
  const double spike = kRate * (1.5 + 0.7 * random.uniform());
  const RatePiece planned = steady(kRate, 300);
  const RatePiece base = steady(kRate, 100);
  return {{kSteady, {planned, steady(kRate, 300)}, 1},
          {"step", {planned, base, steady(step, 100), base}, 1},
          {"ramp", {planned, steady(kRate, 50), {100, kRate, ramp}, {100, ramp, kRate}, steady(kRate, 50)}, 1},
          {"spike", {planned, base, steady(spike, 10), steady(kRate, 90), steady(spike, 10), steady(kRate, 90)}, 1}};
}

// Of the replicas that the arrivals of each second need in whole batches.
double capacity_dollars(const TuningComparison& compared) {
  const std::vector<int64_t>& arrivals_ns = compared.live().arrivals_ns;
  std::vector<double> counts(static_cast<size_t>(arrivals_ns.back() / 1'000'000'000) + 1);
  for (const int64_t at : arrivals_ns) counts[static_cast<size_t>(at / 1'000'000'000)] += 1;
  double dollars = 0;
  for (size_t i = 0; i < compared.plan().stages.size(); ++i) {
    const PlannedStage& stage = compared.pipeline().stages[i];
    StageConfiguration one = compared.plan().stages[i];
    one.replicas = 1;
    for (const double rate : counts)
      dollars += std::max(1.0, std::ceil(rate / throughput(stage, one))) * cost(stage, one) / 3600;
  }
  return dollars;
}

// What was found of one tuner, over all runs.
struct Kept {
  double attainment = 1;   // the least
  double dollars = 0;      // of all
  double of_capacity = 0;  // the most
  double steady_changes = 0;
  size_t runs = 0;

  void add(const TuningComparison& compared, const std::string& trace, const std::string& system, ResultTable& table) {
    const auto value = [&](const char* column) { return compared.value(system, column, LateQueries::kRefused); };
    const double here = value("dollars") / capacity_dollars(compared);
    table.add({{"pipeline", compared.pipeline().name},
               {"trace", trace},
               {"system", system},
               {"attainment", value("attainment")},
               {"dollars", value("dollars")},
               {"of_capacity", here},
               {"changes", value("changes")}});
    attainment = std::min(attainment, value("attainment"));
    dollars += value("dollars");
    of_capacity = std::max(of_capacity, here);
    if (trace == kSteady) steady_changes += value("changes");
    ++runs;
  }
};

void find(ExperimentRun& run, const std::string& system, const Kept& kept, const Kept& last_minute) {
  run.find({fmt::format("{}: attainment, the least of {} runs", system, kept.runs), "-", ">= 99 %",
            fmt::format("{:.2f} %", 100 * kept.attainment), kept.attainment >= kShapeGoal.attainment});
  const double ratio = kept.dollars / last_minute.dollars;
  run.find({fmt::format("{}: cost of all, in that of `{}`", system, kLastMinute), "-", "<= 1",
            fmt::format("{:.3f}", ratio), ratio <= 1});
  run.find({fmt::format("{}: cost in that which capacity needs, the most", system), "-", "<= 2",
            fmt::format("{:.2f}", kept.of_capacity), kept.of_capacity <= 2});
  run.find({fmt::format("{}: changes at a steady load", system), "-", "none", fmt::format("{:g}", kept.steady_changes),
            kept.steady_changes == 0});
}

}  // namespace

Status run_inferline_shapes(ExperimentRun& run) {
  const std::array<std::pair<std::string, TunerMethod>, 2> methods{
      std::pair{std::string("replan"), TunerMethod(ReplanOptions::of_server())},
      {"by_ratio", TunerOptions::by_ratio()}};
  std::map<std::string, Kept> kept;
  const std::vector<PlannedPipeline> all{inferline_video(), inferline_social(), inferline_cascade()};
  for (const PlannedPipeline& pipeline : run.size(all, std::vector<PlannedPipeline>{inferline_cascade()})) {
    for (const TunedTrace& trace : shapes(run.seed())) {
      FOLIOT_ASSIGN_OR_RETURN(TuningComparison compared,
                              TuningComparison::make(run, pipeline, trace, kShapeGoal, kConfidence));
      const auto add = [&](const std::string& system, ReplicaTuner& tuner) {
        compared.add_tuned(system, compared.plan(), tuner, kServer);
        kept[system].add(compared, trace.name, system, run.table("shapes"));
      };
      for (const auto& [system, method] : methods) {
        ServedTuner tuner(compared, method);
        add(system, tuner);
      }
      FOLIOT_ASSIGN_OR_RETURN(TuningComparison before, TuningComparison::make(run, pipeline, trace, kShapeGoal));
      ReplanTuner last_minute(pipeline, before.plan(), kShapeGoal, ReplanOptions::of_server());
      before.add_tuned(kLastMinute, before.plan(), last_minute, kServer);
      kept[kLastMinute].add(before, trace.name, kLastMinute, run.table("shapes"));
    }
  }
  for (const auto& [system, method] : methods) find(run, system, kept[system], kept[kLastMinute]);
  return Status();
}

}  // namespace foliot
