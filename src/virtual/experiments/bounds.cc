// How far is each policy from the best that could be done? 29 workloads on four GPUs that
// hold only some of their models, each beside its clairvoyant bound (virtual/bounds/clairvoyant_bound.h).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "virtual/bounds/clairvoyant_bound.h"
#include "virtual/experiments/experiment.h"

namespace foliot {
namespace {

constexpr uint32_t kBoundDevices = 4;
constexpr double kBoundRate = 1500;
constexpr uint64_t kBoundPopularitySeed = 4;
constexpr int kMixed = 0;  // as SLO: a third each of 30, 75 and 150 ms

struct BoundCell {
  std::string arrivals;  // poisson; bursts: of each model, CV 4; drift: other models are popular every 4 s
  uint32_t models;
  uint32_t pages;  // on each device
  int slo_ms;
  double zipf;

  ResultTable::Row row() const {
    return {{"arrivals", arrivals},
            {"models", models},
            {"pages", pages},
            {"slo_ms", slo_ms == kMixed ? ResultTable::Row("mixed") : ResultTable::Row(slo_ms)},
            {"zipf", zipf}};
  }
  bool is_tight() const { return arrivals == "bursts" || slo_ms == 30 || slo_ms == kMixed; }
};

std::vector<BoundCell> bound_cells(const ExperimentRun& run) {
  std::vector<BoundCell> result;
  for (const uint32_t models : {300u, 600u, 1200u}) {
    result.insert(result.end(), {{"poisson", models, 80, 30, 1.0},
                                 {"poisson", models, 80, 75, 0.9},
                                 {"poisson", models, 160, 75, 0.6},
                                 {"poisson", models, 250, 75, 1.3},
                                 {"poisson", models, 160, 150, 1.0},
                                 {"poisson", models, 250, 150, 0.8},
                                 {"poisson", models, 160, kMixed, 1.0}});
  }
  for (const std::string arrivals : {"bursts", "drift"}) {
    result.insert(result.end(), {{arrivals, 600, 160, 30, 1.0},
                                 {arrivals, 600, 160, 75, 1.0},
                                 {arrivals, 1200, 250, 150, 0.8},
                                 {arrivals, 300, 80, 75, 1.3}});
  }
  if (run.quick()) result = {result[0], result[22]};
  return result;
}

// All six profiles, of which some models are popular and others not.
Workload workload_of(const BoundCell& cell, Duration duration) {
  const std::vector<int> slos = cell.slo_ms == kMixed ? std::vector<int>{30, 75, 150} : std::vector<int>{cell.slo_ms};
  const auto& profiles = ProfileTable::v100().profiles();
  Workload workload;
  for (const int slo_ms : slos) {
    for (const ModelProfile& profile : profiles) {
      workload.groups.push_back({.name = fmt::format("{}, {} ms", profile.name, slo_ms),
                                 .profile = profile.name,
                                 .count = cell.models / static_cast<uint32_t>(slos.size() * profiles.size()),
                                 .slo = Duration::milliseconds(slo_ms)});
    }
  }
  Stream stream{
      .name = "users", .arrivals = {.rate = kBoundRate}, .zipf = cell.zipf, .popularity_seed = kBoundPopularitySeed};
  if (cell.arrivals == "bursts") {
    stream.arrivals.kind = ArrivalKind::kGamma;
    stream.arrivals.coefficient_of_variation = 4;
    stream.per_model = true;
  }
  const Duration step = cell.arrivals == "drift" ? Duration::seconds(4) : duration;
  for (Duration start; start < duration; start += step) {
    workload.streams.push_back(stream);
    workload.streams.back().name = fmt::format("users_{}", workload.streams.size());
    workload.streams.back().start = start;
    if (start + step < duration) workload.streams.back().stop = start + step;
    ++stream.popularity_seed;
  }
  return workload;
}

struct Worst {
  double below = 0;
  std::string cell;

  void add(double points, const BoundCell& at) {
    if (points <= below) return;
    below = points;
    cell = fmt::format("{}, {} models, {} pages, SLO {} ms, Zipf {}", at.arrivals, at.models, at.pages,
                       at.slo_ms == kMixed ? "mixed" : std::to_string(at.slo_ms), at.zipf);
  }
};

}  // namespace

Status run_bounds(ExperimentRun& run) {
  SimulationOptions setting{.devices = kBoundDevices};
  setting.duration = Duration::seconds(run.size(30, 3));
  setting.warm_up = Duration::seconds(run.size(10, 1));
  setting.preload = true;
  const std::vector<BoundCell> all = bound_cells(run);
  run.expect(all.size() * (run.policies().size() + 1));
  Worst loose, tight;
  int above = 0;
  for (const BoundCell& cell : all) {
    setting.page_cache_bytes = cell.pages * setting.page_bytes;
    const Workload workload = workload_of(cell, run.duration().value_or(setting.duration));
    FOLIOT_ASSIGN_OR_RETURN(const ClairvoyantBound bound, run.clairvoyant(setting, workload, cell.row()));
    FOLIOT_RETURN_IF_ERROR(
        run.compare(setting, workload, cell.row(), goodput_estimates(workload, kBoundDevices), bound.goodput()));
    std::string here;
    for (const RegisteredPolicy& policy : run.policies()) {
      const double attainment = run.result(policy.name, cell.row(), "attainment");
      here += fmt::format("{} {:.2f} %, ", policy.name, 100 * attainment);
      if (attainment > bound.attainment() + 1e-9) ++above;
      if (policy.name == "foliot") (cell.is_tight() ? tight : loose).add(100 * (bound.attainment() - attainment), cell);
    }
    run.find({.what = fmt::format("attainment: {}, {} models, {} pages, SLO {}, Zipf {}", cell.arrivals, cell.models,
                                  cell.pages, cell.row()["slo_ms"].dump(), cell.zipf),
              .here = fmt::format("{}clairvoyant bound {:.2f} %", here, 100 * bound.attainment())});
  }
  run.find({.what = "policies above the clairvoyant bound",
            .goal = "none",
            .here = std::to_string(above),
            .met = above == 0});
  run.find({.what = "foliot below the bound: SLO of 75 ms and more",
            .goal = "at most 2 points",
            .here = fmt::format("at most {:.2f} points [{}]", loose.below, loose.cell),
            .met = loose.below <= 2});
  run.find({.what = "foliot below the bound: SLO of 30 ms, mixed SLOs, bursts",
            .goal = "at most 5 points",
            .here = fmt::format("at most {:.2f} points [{}]", tight.below, tight.cell),
            .met = tight.below <= 5});
  return Status();
}

}  // namespace foliot
