// InferLine's tuner beside AutoScale's tuning of whole pipelines (Figures 4.6, 4.7, 4.10, 4.11),
// what of it planner and tuner contribute (4.12), and DS2 (4.14).
#include <fmt/format.h>

#include <string>
#include <vector>

#include "planning/pipelines/planner.h"
#include "planning/pipelines/rate_tuner.h"
#include "planning/pipelines/replan_tuner.h"
#include "virtual/experiments/experiment.h"
#include "virtual/experiments/inferline_pipelines.h"
#include "virtual/experiments/tuning_comparison.h"

namespace foliot {
namespace {

constexpr LatencyGoal kTuneGoal{Duration::milliseconds(150)};
constexpr LateQueries kBoth[] = {LateQueries::kServed, LateQueries::kRefused};

std::vector<TunedTrace> tuned_traces() {
  return {big_spike(),
          instant_spike(),
          {"150 to 250 in 300 s", {steady(150, 300), steady(150, 60), {300, 150, 250}, steady(250, 300)}, 1},
          {"150 to 250 in 60 s", {steady(150, 300), steady(150, 60), {60, 150, 250}, steady(250, 300)}, 1},
          {"150 to 250 in 10 s", {steady(150, 300), steady(150, 60), {10, 150, 250}, steady(250, 300)}, 1},
          {"50 to 250 in 600 s", {steady(50, 300), steady(50, 60), {600, 50, 250}, steady(250, 60)}, 1},
          {"variation 1 to 2", {steady(150, 300), steady(150, 120), steady(150, 360, 2)}, 1}};
}

void add_tuners(TuningComparison& compared, LateQueries late) {
  const PlannedPipeline& pipeline = compared.pipeline();
  const QueryTrace& sample = compared.sample();
  const Configuration& from = compared.plan();
  const TunedRunOptions options{.late = late};
  compared.add_fixed("plan alone", from, options);
  Tuner tuner(pipeline, from, sample, {});
  compared.add_tuned("tuner", from, tuner, options);
  Tuner printed(pipeline, from, sample, {.rho_as_printed = true});
  compared.add_tuned("tuner as printed", from, printed, options);
  Tuner own(pipeline, from, sample, {.down_by_least_rho = false});
  compared.add_tuned("tuner down by own rho", from, own, options);
  Tuner relative(pipeline, from, sample, TunerOptions::by_ratio());
  compared.add_tuned("tuner by ratio", from, relative, options);
  ReplanTuner replan(pipeline, from, compared.goal());
  compared.add_tuned("replan", from, replan, options);
  RateTuner rate(pipeline, from, {});
  compared.add_tuned("plan, rate tuner", from, rate, options);
}

// What a plan costs that knows all that is served.
Status add_oracle(TuningComparison& compared) {
  FOLIOT_ASSIGN_OR_RETURN(const PipelinePlan oracle,
                          plan_pipeline(compared.pipeline(), compared.live(), compared.goal()));
  compared.add_fixed("oracle plan", oracle.configuration);
  return Status();
}

Status add_rivals(TuningComparison& compared, LateQueries late) {
  using Rate = CoarseGrainedRate;
  using Unit = CoarseGrainedUnit;
  const TunedRunOptions options{.late = late};
  FOLIOT_RETURN_IF_ERROR(compared.add_coarse("cg-mean", Rate::kMean, Unit::kPipelined, options));
  FOLIOT_RETURN_IF_ERROR(compared.add_coarse("cg-peak", Rate::kPeak, Unit::kPipelined, options));
  return compared.add_coarse("cg-peak one batch", Rate::kPeak, Unit::kOneBatch, options);
}

std::string paper_of(const std::string& trace) {
  if (trace == "big spike") return "99.8 % for 8.50, CG 93.7 % for 36.30";
  if (trace == "instant spike") return "99.3 % for 15.27, CG 75.8 % for 24.63";
  return "near 100 %";
}

// From when on the P99 of every minute is within the SLO; the length of the series: never.
size_t minutes_to_settle(ExperimentRun& run, const std::string& trace, const std::string& system, Duration slo) {
  size_t settled = 0;
  for (const ResultTable::Row& row : run.table("series").rows()) {
    if (row.at("trace") != trace || row.at("system") != system) continue;
    if (row.at("p99_ms").get<double>() > slo.to_milliseconds()) settled = row.at("minute").get<size_t>() + 1;
  }
  return settled;
}

}  // namespace

Status run_inferline_tune(ExperimentRun& run) {
  const PlannedPipeline social = inferline_social();
  for (const TunedTrace& trace : tuned_traces()) {
    FOLIOT_ASSIGN_OR_RETURN(TuningComparison compared, TuningComparison::make(run, social, trace, kTuneGoal));
    FOLIOT_RETURN_IF_ERROR(add_oracle(compared));
    for (const LateQueries late : kBoth) {
      add_tuners(compared, late);
      FOLIOT_RETURN_IF_ERROR(add_rivals(compared, late));
      const auto text = [&](const char* system) { return compared.text(system, late); };
      run.find({fmt::format("{}, {}{}", social.name, trace.name, late == LateQueries::kServed ? "" : ", with refusals"),
                late == LateQueries::kServed ? paper_of(trace.name) : "-", "tuner >= 99 %, cheaper than CG",
                fmt::format("{}; {}; {}; {}; {}; {}", text("tuner"), text("tuner down by own rho"),
                            text("tuner by ratio"), text("replan"), text("cg-peak"), text("cg-peak one batch")),
                compared.value("tuner", "attainment", late) >= kTuneGoal.attainment &&
                    compared.value("tuner", "dollars", late) < compared.value("cg-peak", "dollars", late)});
    }
    run.find({fmt::format("{}, {}: dollars of a plan for the whole trace", social.name, trace.name), "-", "-",
              compared.text("oracle plan")});
  }
  return Status();
}

Status run_inferline_attribution(ExperimentRun& run) {
  const PlannedPipeline image = inferline_image();
  const TunedTrace trace{
      "150 to 250 in 60 s", {steady(150, 300), steady(150, 60), {60, 150, 250}, steady(250, 300)}, 1};
  FOLIOT_ASSIGN_OR_RETURN(TuningComparison compared, TuningComparison::make(run, image, trace, kTuneGoal));
  FOLIOT_RETURN_IF_ERROR(
      compared.add_coarse_fixed("baseline plan", CoarseGrainedRate::kPeak, CoarseGrainedUnit::kOneBatch));
  FOLIOT_RETURN_IF_ERROR(add_oracle(compared));
  add_tuners(compared, LateQueries::kServed);
  FOLIOT_RETURN_IF_ERROR(add_rivals(compared, LateQueries::kServed));
  const double ratio = compared.value("baseline plan", "dollars") / compared.value("plan alone", "dollars");
  run.find({"cost of the baseline's plan over InferLine's", "more than 3x", "the same", fmt::format("{:.1f}x", ratio),
            ratio > 3});
  const auto keeps = [&](const char* system) { return compared.value(system, "attainment") >= kTuneGoal.attainment; };
  run.find({"plan alone; with the baseline's tuner; with InferLine's", "only the last keeps the SLO", "the same",
            fmt::format("{}; {}; {}", compared.text("plan alone"), compared.text("plan, rate tuner"),
                        compared.text("tuner")),
            keeps("tuner") && !keeps("plan alone") && !keeps("plan, rate tuner")});
  return Status();
}

Status run_inferline_ds2(ExperimentRun& run) {
  const PlannedPipeline image = inferline_image();
  const auto kept = [](double variation) {
    return TunedTrace{
        fmt::format("50, variation {}", variation), {steady(50, 300, variation), steady(50, 900, variation)}, 1};
  };
  // Without bursts at all: gaps are nearly even.
  const std::vector<TunedTrace> traces{
      kept(0.1),
      kept(1),
      kept(2),
      {"50 to 100 in 60 s", {steady(50, 300), steady(50, 60), {60, 50, 100}, steady(100, 840)}, 1}};
  for (const TunedTrace& trace : traces) {
    FOLIOT_ASSIGN_OR_RETURN(TuningComparison compared, TuningComparison::make(run, image, trace, kTuneGoal));
    const Configuration mean = plan_for_mean(image, compared.sample().rate());
    RateTuner ds2(image, mean, RateTunerOptions::ds2());
    compared.add_tuned("ds2", mean, ds2, {.halt = Duration::seconds(15)});
    RateTuner running(image, mean, RateTunerOptions::ds2());
    compared.add_tuned("ds2 without halts", mean, running);
    add_tuners(compared, LateQueries::kServed);
    const bool grows = trace.name == "50 to 100 in 60 s";
    std::string settled;
    if (grows) {
      settled = fmt::format("; P99 within the SLO for good from minute {} and {}",
                            minutes_to_settle(run, trace.name, "ds2", kTuneGoal.slo),
                            minutes_to_settle(run, trace.name, "tuner", kTuneGoal.slo));
    }
    run.find({fmt::format("{} q/s", trace.name),
              grows ? "DS2 needs nearly 300 s to settle" : "DS2 misses more the burstier the arrivals are", "the same",
              fmt::format("{}; {}; {}{}", compared.text("ds2"), compared.text("ds2 without halts"),
                          compared.text("tuner"), settled)});
  }
  return Status();
}

}  // namespace foliot
