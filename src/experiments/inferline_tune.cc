// InferLine's tuner beside AutoScale's tuning of whole pipelines (Figures 4.6, 4.7, 4.10, 4.11):
// a plan is made for the first quarter of a trace, or for its steady beginning; the rest is served.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/experiment.h"
#include "experiments/inferline_pipelines.h"
#include "planning/coarse_grained.h"
#include "planning/planner.h"
#include "planning/replan_tuner.h"
#include "planning/tuned_run.h"

namespace foliot {
namespace {

constexpr LatencyGoal kTuneGoal{Duration::milliseconds(150)};

// A piece of a trace: the rate goes from `rate` to `end_rate` steadily.
struct RatePiece {
  double seconds = 30;
  double rate = 100;
  double end_rate = 100;
  double variation = 1;
};

struct TunedTrace {
  std::string name;
  std::vector<RatePiece> pieces;
  size_t planned_pieces = 0;  // the first of them, which the plan is made for
};

RatePiece steady(double rate, double seconds = 30, double variation = 1) { return {seconds, rate, rate, variation}; }

// The shapes of AutoScale's traces "Big Spike" and "Dual Phase" as the thesis has them (Figure
// 4.6): 30 s for each minute, at most 300 queries per second. The first quarter is planned for.
TunedTrace big_spike() {
  TunedTrace trace{"big spike", {}, 15};
  for (const double rate : {78, 84, 90, 95, 99, 101, 100, 97, 93, 88,  84,  82,  83,  86,  90,   // planned
                            93, 95, 94, 91, 88, 87,  89,  93, 99, 180, 300, 290, 210, 120, 100,  //
                            96, 93, 90, 87, 85, 84,  85,  88, 91, 94,  96,  97,  95,  92,  89,   //
                            86, 84, 83, 84, 87, 90,  92,  93, 92, 90,  88,  87,  88,  90,  91}) {
    trace.pieces.push_back(steady(rate));
  }
  return trace;
}

TunedTrace growing_then_falling() {
  TunedTrace trace{"instant spike", {}, 15};
  for (const double rate : {100, 102, 105, 107, 110, 113, 115, 118, 120, 122, 124, 127, 130, 133, 136,  // planned
                            140, 146, 152, 158, 300, 170, 176, 184, 192, 200, 206, 212, 216, 218, 220,  //
                            222, 224, 222, 180, 140, 110, 90,  75,  62,  54,  48,  44,  40,  38,  36,   //
                            35,  34,  33,  32,  32,  31,  31,  30,  30,  30,  30,  30,  30,  30,  30}) {
    trace.pieces.push_back(steady(rate));
  }
  return trace;
}

std::vector<TunedTrace> tuned_traces() {
  return {big_spike(),
          growing_then_falling(),
          {"150 to 250 in 60 s", {steady(150, 300), steady(150, 60), {60, 150, 250}, steady(250, 300)}, 1},
          {"150 to 250 in 10 s", {steady(150, 300), steady(150, 60), {10, 150, 250}, steady(250, 300)}, 1},
          {"50 to 250 in 600 s", {steady(50, 300), steady(50, 60), {600, 50, 250}, steady(250, 60)}, 1},
          {"variation 1 to 2", {steady(150, 300), steady(150, 120), steady(150, 360, 2)}, 1}};
}

struct Arrivals {
  std::vector<Duration> planned;
  std::vector<Duration> live;  // since the end of what was planned for
};

Arrivals draw_arrivals(const TunedTrace& trace, double shortening, uint64_t seed) {
  Random random(seed);
  Arrivals to;
  double begin = 0;
  double at = 0;
  double planned_end = 0;
  for (size_t i = 0; i < trace.pieces.size(); ++i) {
    const RatePiece& piece = trace.pieces[i];
    const double seconds = piece.seconds * shortening;
    if (i == trace.planned_pieces) planned_end = begin;
    for (; at < begin + seconds;) {
      if (i < trace.planned_pieces) {
        to.planned.push_back(Duration::from_seconds(at));
      } else {
        to.live.push_back(Duration::from_seconds(at - planned_end));
      }
      const double rate = piece.rate + (piece.end_rate - piece.rate) * (at - begin) / seconds;
      at += random.gamma_with_variation(piece.variation) / rate;
    }
    begin += seconds;
  }
  return to;
}

class TuneExperiment {
 public:
  TuneExperiment(ExperimentRun& run, const PlannedPipeline& pipeline) : run_(run), pipeline_(pipeline) {}

  Status measure(const TunedTrace& trace) {
    const Arrivals arrivals = draw_arrivals(trace, run_.size(1.0, 0.2), run_.seed());
    const QueryTrace sample = QueryTrace::draw(pipeline_, arrivals.planned, run_.seed());
    const QueryTrace live = QueryTrace::draw(pipeline_, arrivals.live, run_.seed() + 1);
    FOLIOT_ASSIGN_OR_RETURN(const PipelinePlan planned, plan_pipeline(pipeline_, sample, kTuneGoal));
    const Configuration& from = planned.configuration;
    add(trace, "plan alone", run_fixed(pipeline_, from, live, kTuneGoal));
    Tuner tuner(pipeline_, from, sample, {});
    add(trace, "tuner", run_tuned(pipeline_, from, live, kTuneGoal, tuner));
    Tuner printed(pipeline_, from, sample, {.rho_as_printed = true});
    add(trace, "tuner as printed", run_tuned(pipeline_, from, live, kTuneGoal, printed));
    Tuner own(pipeline_, from, sample, {.down_by_least_rho = false});
    add(trace, "tuner down by own rho", run_tuned(pipeline_, from, live, kTuneGoal, own));
    Tuner relative(pipeline_, from, sample, {.rates_as_printed = false, .down_by_least_rho = false});
    add(trace, "tuner by ratio", run_tuned(pipeline_, from, live, kTuneGoal, relative));
    ReplanTuner replan(pipeline_, from, kTuneGoal);
    add(trace, "replan", run_tuned(pipeline_, from, live, kTuneGoal, replan));
    const auto add_coarse = [&](const char* name, CoarseGrainedRate rate, CoarseGrainedUnit unit) {
      const auto coarse = plan_coarse_grained(pipeline_, sample, kTuneGoal.slo, rate, unit);
      if (!coarse.ok()) return coarse.status();
      CoarseGrainedTuner autoscale(*coarse);
      add(trace, name, run_tuned(pipeline_, coarse->configuration, live, kTuneGoal, autoscale));
      return Status();
    };
    FOLIOT_RETURN_IF_ERROR(add_coarse("cg-mean", CoarseGrainedRate::kMean, CoarseGrainedUnit::kPipelined));
    FOLIOT_RETURN_IF_ERROR(add_coarse("cg-peak", CoarseGrainedRate::kPeak, CoarseGrainedUnit::kPipelined));
    FOLIOT_RETURN_IF_ERROR(add_coarse("cg-peak one batch", CoarseGrainedRate::kPeak, CoarseGrainedUnit::kOneBatch));
    return Status();
  }

  void find(const TunedTrace& trace, const std::string& paper) {
    const auto value = [&](const char* system, const char* column) {
      return run_.table("results").value({{"pipeline", pipeline_.name}, {"trace", trace.name}, {"system", system}},
                                         column);
    };
    const auto text = [&](const char* system) {
      return fmt::format("{} {:.2f} % for {:.2f} dollars", system, 100 * value(system, "attainment"),
                         value(system, "dollars"));
    };
    run_.find({fmt::format("{}, {}", pipeline_.name, trace.name), paper, "tuner >= 99 %, cheaper than CG",
               fmt::format("{}; {}; {}; {}; {}", text("tuner"), text("tuner down by own rho"), text("replan"),
                           text("cg-peak"), text("cg-peak one batch"))});
  }

 private:
  void add(const TunedTrace& trace, const std::string& system, const TunedRun& tuned) {
    run_.table("results").add({{"pipeline", pipeline_.name},
                               {"trace", trace.name},
                               {"system", system},
                               {"dollars", tuned.dollars},
                               {"offered", tuned.estimate.queries},
                               {"attainment", tuned.estimate.attainment()},
                               {"p99_ms", tuned.estimate.p99.to_milliseconds()}});
    for (size_t minute = 0; minute < std::min(tuned.attainment.size(), tuned.dollars_per_hour.size()); ++minute) {
      run_.table("series").add({{"pipeline", pipeline_.name},
                                {"trace", trace.name},
                                {"system", system},
                                {"minute", minute},
                                {"attainment", tuned.attainment[minute]},
                                {"dollars_per_hour", tuned.dollars_per_hour[minute]}});
    }
  }

  ExperimentRun& run_;
  const PlannedPipeline& pipeline_;
};

}  // namespace

Status run_inferline_tune(ExperimentRun& run) {
  const PlannedPipeline social = inferline_social();
  TuneExperiment experiment(run, social);
  for (const TunedTrace& trace : tuned_traces()) {
    FOLIOT_RETURN_IF_ERROR(experiment.measure(trace));
    experiment.find(trace, trace.name == "big spike"       ? "99.8 % for 8.50, CG 93.7 % for 36.30"
                           : trace.name == "instant spike" ? "99.3 % for 15.27, CG 75.8 % for 24.63"
                                                           : "near 100 %");
  }
  return Status();
}

}  // namespace foliot
