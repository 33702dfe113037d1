// Clockwork, section 6.3, Figure 7: how short may the SLO be? Six GPUs, 12 or 48 x
// ResNet-50 with a Poisson process each, 600 to 2,400 requests a second in all.
#include <fmt/format.h>

#include <algorithm>

#include "virtual/experiments/experiment.h"
#include "virtual/experiments/slo_steps.h"

namespace foliot {
namespace {

constexpr uint32_t kFigure7Devices = 6;
constexpr double kSatisfied = 0.99;

Workload poisson(uint32_t models, double rate, Duration slo) {
  return {.groups = {resnet50("resnet50", models, slo)},
          .streams = {{.name = "users", .arrivals = {.rate = rate}, .per_model = true}}};
}

// The smallest step from which on 99 % are satisfied; nullopt if not even the last.
std::optional<double> satisfied_from(ExperimentRun& run, const std::string& policy, uint32_t models, int rate,
                                     const std::vector<double>& slos_ms) {
  std::optional<double> from;
  for (auto slo_ms = slos_ms.rbegin(); slo_ms != slos_ms.rend(); ++slo_ms) {
    const ResultTable::Row cell{{"models", models}, {"rate", rate}, {"slo_ms", *slo_ms}};
    if (!(run.result(policy, cell, "attainment") >= kSatisfied)) break;
    from = *slo_ms;
  }
  return from;
}

void find(ExperimentRun& run, uint32_t models, int rate, const std::vector<double>& slos_ms) {
  const double paper_ms = rate == 600 ? 10 : rate == 1200 ? 22 : 74;
  std::string here;
  std::optional<bool> met;
  for (const std::string policy : {"foliot", "clockwork"}) {
    const std::optional<double> from = satisfied_from(run, policy, models, rate, slos_ms);
    if (policy == "foliot") met = from && *from < paper_ms;
    here += fmt::format("{}{} {}", here.empty() ? "" : ", ", policy, from ? fmt::format("{} ms", *from) : "never");
  }
  run.find({.what = fmt::format("99 % satisfied from SLO, N {}, R {} r/s", models, rate),
            .paper = fmt::format("{:.0f} ms", paper_ms),
            .goal = "less",
            .here = here,
            .met = met});
}

}  // namespace

Status run_figure_7(ExperimentRun& run) {
  const std::vector<double> slos_ms = run.size(slo_steps_ms(2), {9.79, 74.32});
  const std::vector<uint32_t> model_counts = run.size<std::vector<uint32_t>>({12, 48}, {12});
  const std::vector<int> rates = run.size<std::vector<int>>({600, 1200, 2400}, {600});
  SimulationOptions setting{.devices = kFigure7Devices};
  setting.duration = Duration::seconds(run.size(25, 3));
  setting.warm_up = Duration::seconds(run.size(5, 1));
  setting.preload = true;
  run.expect(slos_ms.size() * model_counts.size() * rates.size() * run.policies().size());
  for (const uint32_t models : model_counts) {
    for (const int rate : rates) {
      for (const double slo_ms : slos_ms) {
        const Workload workload = poisson(models, rate, Duration::from_milliseconds(slo_ms));
        const GoodputEstimates estimates = goodput_estimates(workload, kFigure7Devices);
        const ResultTable::Row cell{{"models", models}, {"rate", rate}, {"slo_ms", slo_ms}};
        FOLIOT_RETURN_IF_ERROR(run.compare(setting, workload, cell, estimates));
      }
      find(run, models, rate, slos_ms);
    }
  }
  return Status();
}

}  // namespace foliot
