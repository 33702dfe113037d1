// Half again as many requests as the fluid estimate allows, in several shapes: which
// policy answers most of them in time?
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "virtual/experiments/experiment.h"

namespace foliot {
namespace {

constexpr uint32_t kOverloadDevices = 4;
constexpr double kOverload = 1.5;
constexpr uint32_t kCopies = 4;  // of each profile
constexpr uint32_t kColdCopies = 400;
constexpr double kWithin = 0.99;  // of the best policy
constexpr Duration kOverloadSlo = Duration::milliseconds(100);

struct OverloadShape {
  std::string name;
  Workload workload;
  bool steady = true;  // the fluid estimate is of steady flows
};

Workload at_overload(const Workload& workload) {
  return scaled(workload, kOverload * estimate_of(workload, kOverloadDevices).rate_scale);
}

Workload gamma(double coefficient_of_variation) {
  const ArrivalOptions arrivals{.kind = ArrivalKind::kGamma, .coefficient_of_variation = coefficient_of_variation};
  return at_overload(mixed_models(kCopies, kOverloadSlo, {.arrivals = arrivals, .per_model = true}));
}

// Each profile with each of the SLOs.
Workload mixed_slos() {
  Workload workload;
  for (const int slo_ms : {25, 50, 100, 250, 500}) {
    const Workload part = mixed_models(1, Duration::milliseconds(slo_ms), {});
    for (size_t i = 0; i < part.groups.size(); ++i) {
      const std::string name = fmt::format("{}, {} ms", part.groups[i].name, slo_ms);
      workload.groups.push_back(part.groups[i]);
      workload.groups.back().name = name;
      workload.streams.push_back(part.streams[i]);
      workload.streams.back().models = {name};
    }
  }
  return at_overload(workload);
}

// At half of the estimate, but for ten seconds at three times that.
Workload spike() {
  Workload workload = scaled(at_overload(mixed_models(kCopies, kOverloadSlo, {})), 1.0 / 3);
  for (Stream& stream : workload.streams) {
    stream.arrivals.kind = ArrivalKind::kSpike;
    stream.arrivals.spike_start = Duration::seconds(10);
    stream.arrivals.spike_length = Duration::seconds(10);
  }
  return workload;
}

std::vector<OverloadShape> shapes(const ExperimentRun& run) {
  std::vector<OverloadShape> result{
      {"CV 1", gamma(1)},
      {"CV 4", gamma(4)},
      {"CV 8", gamma(8)},
      {"SLOs 25-500 ms", mixed_slos()},
      {"2,400 models", at_overload(mixed_models(kColdCopies, kOverloadSlo, {.zipf = 0.9}))},
      {"spike x3", spike(), false}};
  if (run.quick()) result.resize(1);
  return result;
}

void find(ExperimentRun& run, const std::string& shape) {
  const auto attainment = [&](const std::string& policy) {
    return run.result(policy, {{"shape", shape}}, "attainment");
  };
  double best = 0;
  for (const RegisteredPolicy& policy : run.policies()) best = std::max(best, attainment(policy.name));
  const double foliot = attainment("foliot");
  run.find({.what = fmt::format("attainment, {}", shape),
            .goal = "best, or within 1 % of the best",
            .here = fmt::format("foliot {:.1f} %, clockwork {:.1f} %, best {:.1f} %", foliot * 100,
                                attainment("clockwork") * 100, best * 100),
            .met = verdict(foliot >= kWithin * best, {foliot})});
}

}  // namespace

Status run_overload(ExperimentRun& run) {
  SimulationOptions setting{.devices = kOverloadDevices};
  setting.duration = Duration::seconds(run.size(35, 3));
  setting.warm_up = Duration::seconds(run.size(5, 1));
  setting.preload = true;
  const std::vector<OverloadShape> all = shapes(run);
  run.expect(all.size() * (run.policies().size() + 1));
  for (const OverloadShape& shape : all) {
    const ResultTable::Row cell{{"shape", shape.name}};
    const GoodputEstimates estimates =
        shape.steady ? goodput_estimates(shape.workload, kOverloadDevices) : GoodputEstimates();
    FOLIOT_ASSIGN_OR_RETURN(const ClairvoyantBound bound, run.clairvoyant(setting, shape.workload, cell));
    FOLIOT_RETURN_IF_ERROR(run.compare(setting, shape.workload, cell, estimates, bound.goodput()));
    find(run, shape.name);
  }
  return Status();
}

}  // namespace foliot
