// 600 models with Zipf popularity on four GPUs, each of which has pages for 20, 62, 80
// or 250 of them: what matters is what is loaded and what is evicted. (20 and 62 on each
// are 80 and 250 on all together.)
#include <fmt/format.h>

#include <algorithm>

#include "app/experiments/experiment.h"

namespace foliot {
namespace {

constexpr uint32_t kDevices = 4;
constexpr uint32_t kModels = 600;
constexpr double kRate = 1800;
constexpr double kAttainment = 0.99;

struct Cell {
  std::string models;
  int pages;  // for so many models on each device
  int slo_ms;

  ResultTable::Row row() const { return {{"models", models}, {"pages_for", pages}, {"slo_ms", slo_ms}}; }
};

Workload zipf(const Cell& cell, double rate) {
  const Duration slo = Duration::milliseconds(cell.slo_ms);
  const Stream stream{.name = "users", .arrivals = {.rate = rate}, .zipf = 1.0};
  if (cell.models == "resnet50") return {.groups = {resnet50("resnet50", kModels, slo)}, .streams = {stream}};
  return mixed_models(kModels / 6, slo, stream);
}

// So many times the mean of the models' pages.
uint64_t page_cache_bytes(const Cell& cell, uint64_t page_bytes) {
  const Workload workload = zipf(cell, kRate);
  uint64_t pages = 0;
  for (const ModelGroup& group : workload.groups) {
    const uint64_t weights = ProfileTable::v100().find(group.profile)->weights_bytes;
    pages += (weights + page_bytes - 1) / page_bytes;
  }
  return pages * static_cast<uint64_t>(cell.pages) / workload.groups.size() * page_bytes;
}

// The highest rate with 99 % attainment, to a sixty-fourth of the fluid capacity.
Status find_capacity(ExperimentRun& run, const SimulationOptions& setting, const Cell& cell) {
  const double capacity = bound_of(zipf(cell, kRate), kDevices).rate;
  for (const Policy& policy : run.policies()) {
    if (policy.name != "foliot" && policy.name != "clockwork") continue;
    double low = 0;
    double high = capacity;
    for (int i = 0; i < run.size(6, 2); ++i) {
      const double rate = (low + high) / 2;
      ResultTable::Row row = cell.row();
      row["rate"] = rate;
      FOLIOT_ASSIGN_OR_RETURN(const SimulationReport report, run.simulate(policy, setting, zipf(cell, rate), row));
      (report.all.attainment() >= kAttainment ? low : high) = rate;
    }
    ResultTable::Row row{{"policy", policy.name}};
    row.update(cell.row());
    row["rate"] = low;
    row["bound"] = capacity;
    run.table("capacity").add(row);
  }
  return Status();
}

void find(ExperimentRun& run, const Cell& cell) {
  const auto percent = [&](const std::string& policy) { return run.result(policy, cell.row(), "attainment") * 100; };
  const auto capacity = [&](ResultTable::Row row, const std::string& policy) {
    row["policy"] = policy;
    return run.table("capacity").value(row, "rate");
  };
  const std::string where = fmt::format("{}, pages for {}, SLO {} ms", cell.models, cell.pages, cell.slo_ms);
  run.find({.what = "attainment, " + where,
            .goal = cell.slo_ms >= 50 ? "93 % or more" : "-",
            .here = fmt::format("foliot {:.1f} %, clockwork {:.1f} %, bound {:.1f} %", percent("foliot"),
                                percent("clockwork"), bound_of(zipf(cell, kRate), kDevices).attainment * 100)});
  const double foliot = capacity(cell.row(), "foliot");
  const double clockwork = capacity(cell.row(), "clockwork");
  run.find({.what = "rate with 99 % attainment, " + where,
            .goal = "1.3 x clockwork's",
            .here = fmt::format("foliot {:.0f} r/s, clockwork {:.0f} r/s{}", foliot, clockwork,
                                clockwork > 0 ? fmt::format(", x {:.2f}", foliot / clockwork) : "")});
}

std::vector<Cell> cells(const ExperimentRun& run) {
  std::vector<Cell> result;
  for (const std::string models : {"resnet50", "mixed"}) {
    for (const int pages : {20, 62, 80, 250}) {
      for (const int slo_ms : {25, 50, 100, 250}) result.push_back({models, pages, slo_ms});
    }
  }
  if (run.quick()) result = {{"mixed", 80, 100}};
  return result;
}

}  // namespace

Status run_memory_starved(ExperimentRun& run) {
  SimulationOptions setting{.devices = kDevices};
  setting.duration = Duration::seconds(run.size(40, 3));
  setting.warm_up = Duration::seconds(run.size(15, 1));
  setting.preload = true;
  run.expect(cells(run).size() * (run.policies().size() + run.size(12, 4)));
  for (const Cell& cell : cells(run)) {
    setting.page_cache_bytes = page_cache_bytes(cell, setting.page_bytes);
    const Workload workload = zipf(cell, kRate);
    FOLIOT_RETURN_IF_ERROR(run.compare(setting, workload, cell.row(), goodput_bounds(workload, kDevices)));
    FOLIOT_RETURN_IF_ERROR(find_capacity(run, setting, cell));
    find(run, cell);
  }
  return Status();
}

}  // namespace foliot
