// Clockwork, section 6.1, Figure 5: 15 x ResNet-50 on one GPU, 16 users in a closed
// loop each, SLO from 10 to 500 ms.
#include <fmt/format.h>

#include <algorithm>

#include "virtual/experiments/experiment.h"

namespace foliot {
namespace {

constexpr uint32_t kFigure5Models = 15;
constexpr uint32_t kUsers = 16;

Workload closed_loops(Duration slo) {
  return {.groups = {resnet50("resnet50", kFigure5Models, slo)}, .streams = {{.name = "users", .concurrency = kUsers}}};
}

// A request is always waiting: the best batch that the SLO has room for.
double estimate(Duration slo) {
  const ModelProfile& profile = *ProfileTable::v100().find("resnet50");
  double best = 0;
  for (size_t i = 0; i < profile.batch_sizes.size(); ++i) {
    if (profile.exec[i] <= slo) best = std::max(best, profile.batch_sizes[i] / profile.exec[i].to_seconds());
  }
  return best;
}

void find(ExperimentRun& run, int slo_ms) {
  const ResultTable::Row cell{{"slo_ms", slo_ms}};
  const double foliot = run.result("foliot", cell, "goodput");
  const double clockwork = run.result("clockwork", cell, "goodput");
  const double of_estimate = foliot / run.result("foliot", cell, "estimate");
  const double of_estimate_min = slo_ms >= 50 ? 0.95 : slo_ms >= 25 ? 0.8 : 0;
  run.find({.what = fmt::format("goodput at SLO {} ms", slo_ms),
            .paper = slo_ms == 500 ? "about 800 r/s" : "-",
            .goal = slo_ms >= 50   ? "0.95 of the estimate, clockwork or more"
                    : slo_ms >= 25 ? "0.8 of the estimate, clockwork or more"
                                   : "clockwork or more",
            .here = fmt::format("foliot {:.0f} r/s, {:.3f} of the estimate; clockwork {:.0f} r/s", foliot, of_estimate,
                                clockwork),
            .met = verdict(of_estimate >= of_estimate_min && foliot >= clockwork, {foliot, clockwork})});
}

}  // namespace

Status run_figure_5(ExperimentRun& run) {
  const std::vector<int> slos_ms = run.size<std::vector<int>>({10, 25, 50, 100, 250, 500}, {25, 100});
  SimulationOptions setting;
  setting.duration = Duration::seconds(run.size(25, 3));
  setting.warm_up = Duration::seconds(run.size(5, 1));
  setting.preload = true;
  run.expect(slos_ms.size() * run.policies().size());
  for (const int slo_ms : slos_ms) {
    const Duration slo = Duration::milliseconds(slo_ms);
    const ResultTable::Row cell{{"slo_ms", slo_ms}};
    const GoodputEstimates estimates{{"all", estimate(slo)}};
    FOLIOT_RETURN_IF_ERROR(run.compare(setting, closed_loops(slo), cell, estimates));
  }
  for (const int slo_ms : slos_ms) find(run, slo_ms);
  return Status();
}

}  // namespace foliot
