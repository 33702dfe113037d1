// Clockwork, section 6.2, Figure 6: 3,601 x ResNet-50 on one GPU, SLO 100 ms. A minor
// workload asks one model 200 times a second; five minutes later a major one of 1,000
// requests a second comes to one other model, and to one more with each second.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "virtual/experiments/experiment.h"

namespace foliot {
namespace {

constexpr double kMajorRate = 1000;
constexpr double kMinorRate = 200;
constexpr Duration kFigure6Slo = Duration::milliseconds(100);

struct Figure6Sizes {
  uint32_t models;
  Duration before;  // the major workload begins
  Duration interval;
};

Workload ramp(const Figure6Sizes& sizes) {
  return {.groups = {resnet50("minor", 1, kFigure6Slo), resnet50("major", sizes.models, kFigure6Slo)},
          .streams = {{.name = "minor", .models = {"minor"}, .arrivals = {.rate = kMinorRate}},
                      {.name = "major",
                       .models = {"major"},
                       .arrivals = {.rate = kMajorRate},
                       .start = sizes.before,
                       .activate_every = Duration::seconds(1)}}};
}

// Of attainment. It takes every model for loaded.
double estimate(uint32_t active_models) {
  const Workload steady{.groups = {resnet50("minor", 1, kFigure6Slo), resnet50("major", active_models, kFigure6Slo)},
                        .streams = {{.name = "minor", .models = {"minor"}, .arrivals = {.rate = kMinorRate}},
                                    {.name = "major", .models = {"major"}, .arrivals = {.rate = kMajorRate}}}};
  return estimate_of(steady, 1).attainment;
}

// Attainment by number of active models, which is that of seconds since the major
// workload began: every ten seconds in the first minute, then every minute.
void add_attainment(ExperimentRun& run, const Figure6Sizes& sizes, const SimulationReport& report) {
  uint64_t offered = 0;
  uint64_t good = 0;
  uint64_t begin = 0;
  for (const SimulationInterval& row : report.series) {
    if (row.begin < sizes.before) continue;
    offered += row.all.offered;
    good += row.all.good;
    const auto active = static_cast<uint64_t>((row.begin + report.interval - sizes.before).to_seconds());
    if (active % (active <= 60 ? 10 : 60) != 0 && active != sizes.models) continue;
    run.table("active_models")
        .add({{"policy", report.policy},
              {"from", begin + 1},
              {"active_models", active},
              {"attainment", static_cast<double>(good) / static_cast<double>(offered)},
              {"estimate", estimate(static_cast<uint32_t>(active))}});
    begin = active;
    offered = good = 0;
  }
}

void find_attainment(ExperimentRun& run) {
  const ResultTable& table = run.table("active_models");
  size_t steps = 0;
  size_t above = 0;
  bool known = true;
  std::string below;
  for (const ResultTable::Row& row : table.rows()) {
    if (row.at("policy") != "foliot") continue;
    const ResultTable::Row active{{"policy", "clockwork"}, {"active_models", row.at("active_models")}};
    const double clockwork = table.value(active, "attainment");
    known = known && !std::isnan(clockwork);
    ++steps;
    if (row.at("attainment").get<double>() > clockwork) {
      ++above;
    } else {
      below += fmt::format(" {} ({:.1f} against {:.1f} %)", row.at("active_models").dump(),
                           row.at("attainment").get<double>() * 100, clockwork * 100);
    }
  }
  run.find({.what = "attainment of foliot by number of active models",
            .goal = "above clockwork's at every one",
            .here = fmt::format("above in {} of {} steps{}{}", above, steps, below.empty() ? "" : "; not at", below),
            .met = known ? std::optional(above == steps) : std::nullopt});
}

void find_figures(ExperimentRun& run, const Figure6Sizes& sizes, const SimulationReport& report) {
  const ResultTable& table = run.table("active_models");
  std::string attainment;
  for (const uint64_t active :
       {uint64_t{10}, uint64_t{60}, uint64_t{180}, uint64_t{420}, uint64_t{1200}, uint64_t{3600}}) {
    if (active > sizes.models) break;
    const ResultTable::Row row{{"policy", report.policy}, {"active_models", active}};
    attainment += fmt::format("{}{:.1f}", attainment.empty() ? "" : " / ", table.value(row, "attainment") * 100);
  }
  run.find(
      {.what = fmt::format("{}: attainment up to 10 / 60 / 180 / 420 / 1,200 / 3,600 active models, %", report.policy),
       .here = attainment});
  const SimulationInterval& last = report.series.back();
  run.find({.what = fmt::format("{}: longest latency; minor workload at the end", report.policy),
            .paper = "at most 100 ms; 200 r/s",
            .goal = "the same",
            .here = fmt::format("{:.1f} ms, {} late; {:.0f} of {:.0f} r/s", report.all.latency.max().to_milliseconds(),
                                report.all.missed.contains(Refusal::kLate) ? report.all.missed.at(Refusal::kLate) : 0,
                                static_cast<double>(last.groups.front().good) / report.interval.to_seconds(),
                                static_cast<double>(last.groups.front().offered) / report.interval.to_seconds()),
            .met = report.policy != "foliot" ? std::nullopt
                                             : std::optional(report.all.latency.max() <= kFigure6Slo &&
                                                             last.groups.front().good >= last.groups.front().offered)});
}

}  // namespace

Status run_figure_6(ExperimentRun& run) {
  const Figure6Sizes sizes = run.size<Figure6Sizes>({3600, Duration::seconds(300), Duration::seconds(10)},
                                                    {20, Duration::seconds(2), Duration::seconds(1)});
  SimulationOptions setting;
  setting.duration = sizes.before + Duration::seconds(sizes.models);
  setting.interval = sizes.interval;
  run.expect(run.policies().size());
  const Workload workload = ramp(sizes);
  for (const RegisteredPolicy& policy : run.policies()) {
    FOLIOT_ASSIGN_OR_RETURN(const SimulationReport report, run.measure(policy, setting, workload, {}, {}));
    run.add_series(workload, report);
    add_attainment(run, sizes, report);
    if (policy.name == "foliot" || policy.name == "clockwork") find_figures(run, sizes, report);
  }
  find_attainment(run);
  return Status();
}

}  // namespace foliot
