// Simulation: one policy under one workload, in virtual time: the controller and
// the worker logic that run in production, over simulated devices and links, with
// checkers that stop the program at the first violated invariant.
//
// The same options, workload and seed give the same report, but for how long it took.
#ifndef FOLIOT_VIRTUAL_SIMULATION_SIMULATION_H_
#define FOLIOT_VIRTUAL_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/controller/controller.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "load/workload/profile_table.h"
#include "load/workload/workload.h"
#include "virtual/simulation/simulation_report.h"
#include "virtual/simulation/target_change.h"
#include "virtual/world/fault.h"
#include "virtual/world/simulated_device.h"

namespace foliot {

// Devices of one kind.
struct SimulatedKind {
  std::string name;
  uint32_t devices = 1;
  uint64_t page_cache_bytes = 0;             // of each
  std::optional<double> dollars_per_hour{};  // of each
};

struct SimulationOptions {
  std::string policy;  // what the report calls it
  Controller::PolicyFactory make_policy;
  ControllerOptions controller;

  uint32_t devices = 1;  // of all kinds
  uint64_t page_bytes = uint64_t{16} << 20;
  uint64_t page_cache_bytes = 21'500'000'000;  // of each device
  // None: all devices are of kDefaultKind. Else each has its own number and page cache,
  // and `devices` is their sum.
  std::vector<SimulatedKind> kinds{};
  SimulatedLanes lanes{};  // of each device
  uint32_t contexts = 1;   // likewise
  NoiseOptions noise;
  // A message between controller and worker takes `link` plus an exponential
  // `link_jitter`; messages of one link stay in order.
  Duration link = Duration::microseconds(50);
  Duration link_jitter = Duration::microseconds(20);

  uint64_t seed = 1;
  // Requests come for so long; then the run goes on until all are answered.
  Duration duration = Duration::seconds(60);
  Duration warm_up;  // at the beginning, left out of the report
  // Before the first request, as many models as fit are loaded: one best-effort
  // request each, so by the policy's own means.
  bool preload = false;
  Duration interval = Duration::seconds(1);  // of the series
  // What goes wrong, and what more is drawn from the seed after warm_up. If anything
  // does, the controller looks after its devices' health, and the run is made a
  // second time with the faults announced (virtual/world/fault.h), to be compared with.
  std::vector<Fault> faults{};
  RandomFaults random_faults{};
  // What should be of the models, from when on; those at one instant in this order.
  std::vector<TargetChange> targets{};
  // Sees all that the controller does, preloading included; outlives the run. A log
  // is one (observe/request_log/recorder.h).
  Observer* observer = nullptr;
};

// Errors: kInvalidArgument naming what is wrong: an instant outside the run, models or a kind
// that there are none of, a value beyond its limit.
Status check_targets(std::span<const TargetChange> changes, const SimulationOptions& options, const Workload& workload);

// Called once per interval of simulated time.
using SimulationProgress = std::function<void(Duration simulated)>;

// Errors: kInvalidArgument naming what is wrong with options or workload, a
// profile that `profiles` lacks, a model that no device could hold.
Result<SimulationReport> simulate(const SimulationOptions& options, const Workload& workload,
                                  const ProfileTable& profiles, const SimulationProgress& progress = {});

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_SIMULATION_SIMULATION_H_
