// Clockwork, section 6.4, Figure 8: are users with an SLO kept apart from users
// without? Six GPUs, six ResNet-50 with 200 requests a second each; beside them none,
// 12 models with 16 users in a closed loop each, or 48 with 4.
#include <fmt/format.h>

#include <algorithm>

#include "virtual/experiments/experiment.h"
#include "virtual/experiments/slo_steps.h"

namespace foliot {
namespace {

constexpr uint32_t kFigure8Devices = 6;
constexpr double kAffected = 0.001;

struct Scenario {
  const char* name;
  uint32_t batch_models;
  uint32_t users;  // of each
};
constexpr Scenario kScenarios[] = {{"alone", 0, 0}, {"12 big-batch", 12, 16}, {"48 small-batch", 48, 4}};

Workload shared(const Scenario& scenario, Duration slo) {
  Workload workload{
      .groups = {resnet50("sensitive", 6, slo)},
      .streams = {{.name = "sensitive", .models = {"sensitive"}, .arrivals = {.rate = 1200}, .per_model = true}}};
  if (scenario.batch_models > 0) {
    workload.groups.push_back(resnet50("batch", scenario.batch_models, std::nullopt));
    workload.streams.push_back({.name = "batch", .models = {"batch"}, .concurrency = scenario.users});
  }
  return workload;
}

// The sensitive ones first, then batches as large as there are users, with what is left.
GoodputEstimates estimates(const Scenario& scenario, const Workload& workload) {
  GoodputEstimates result = goodput_estimates(workload, kFigure8Devices);
  if (scenario.batch_models == 0) return result;
  const double busy = std::min<double>(kFigure8Devices, estimate_of(workload, kFigure8Devices).devices_needed);
  const ModelProfile& profile = *ProfileTable::v100().find("resnet50");
  const auto size = std::find(profile.batch_sizes.begin(), profile.batch_sizes.end(), scenario.users);
  const double exec = profile.exec[static_cast<size_t>(size - profile.batch_sizes.begin())].to_seconds();
  const double batch = (kFigure8Devices - busy) * scenario.users / exec;
  return {{"all", result["all"] + batch}, {"sensitive", result["all"]}, {"batch", batch}};
}

void find(ExperimentRun& run, const Scenario& scenario, double slo_ms, double batch_estimate) {
  const auto text = [&](const std::string& policy) {
    ResultTable::Row cell{{"scenario", scenario.name}, {"slo_ms", slo_ms}};
    ResultTable::Row alone{{"scenario", "alone"}, {"slo_ms", slo_ms}};
    if (scenario.batch_models > 0) cell["group"] = "sensitive";
    std::string line = fmt::format("{} {:.2f} % ({:.2f} alone)", policy, run.result(policy, cell, "attainment") * 100,
                                   run.result(policy, alone, "attainment") * 100);
    cell["group"] = "batch";
    return line + fmt::format(", batch {:.0f} r/s", run.result(policy, cell, "goodput"));
  };
  ResultTable::Row beside{{"scenario", scenario.name}, {"slo_ms", slo_ms}, {"group", "batch"}};
  const double batch = run.result("foliot", beside, "goodput");
  const double clockwork = run.result("clockwork", beside, "goodput");
  beside["group"] = "sensitive";
  const double satisfied = run.result("foliot", beside, "attainment");
  const double alone = run.result("foliot", {{"scenario", "alone"}, {"slo_ms", slo_ms}}, "attainment");
  run.find({.what = fmt::format("satisfaction beside {}, SLO {} ms", scenario.name, slo_ms),
            .paper = "unaffected",
            .goal = "within 0.1 points of alone, batch clockwork or more",
            .here = fmt::format("{}; {}; estimate beside all satisfied {:.0f} r/s", text("foliot"), text("clockwork"),
                                batch_estimate),
            .met = verdict(satisfied >= alone - kAffected && batch >= clockwork, {satisfied, alone, clockwork})});
}

}  // namespace

Status run_figure_8(ExperimentRun& run) {
  const std::vector<double> slos_ms = run.size(slo_steps_ms(1), {22.02, 74.32});
  SimulationOptions setting{.devices = kFigure8Devices};
  setting.duration = Duration::seconds(run.size(20, 3));
  setting.warm_up = Duration::seconds(run.size(5, 1));
  setting.preload = true;
  run.expect(std::size(kScenarios) * slos_ms.size() * run.policies().size());
  for (const Scenario& scenario : kScenarios) {
    for (const double slo_ms : slos_ms) {
      const Workload workload = shared(scenario, Duration::from_milliseconds(slo_ms));
      const ResultTable::Row cell{{"scenario", scenario.name}, {"slo_ms", slo_ms}};
      GoodputEstimates estimate = estimates(scenario, workload);
      FOLIOT_RETURN_IF_ERROR(run.compare(setting, workload, cell, estimate));
      if (scenario.batch_models > 0 && slo_ms > 9) find(run, scenario, slo_ms, estimate["batch"]);
    }
  }
  return Status();
}

}  // namespace foliot
