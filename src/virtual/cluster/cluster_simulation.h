// ClusterSimulation: a whole cluster in virtual time: a controller, workers and front ends
// that run the production code of cluster/ over the bytes of simulated links, a load of
// requests, and faults drawn from a seed. Everything follows from the seed.
//
// A run has three parts. Requests come and faults happen for `duration`. Then nothing goes
// wrong any more, and within `settle_max` all workers must be taken in and all front ends
// must show the models as they are. At last each front end asks for each model, which must
// be served, and everything must come to rest, with nothing in flight and nothing leaked.
// virtual/cluster/cluster_checker.h lists what is watched meanwhile.
#ifndef FOLIOT_VIRTUAL_CLUSTER_CLUSTER_SIMULATION_H_
#define FOLIOT_VIRTUAL_CLUSTER_CLUSTER_SIMULATION_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "control/controller/controller.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "load/workload/profile_table.h"
#include "load/workload/workload.h"
#include "virtual/cluster/cluster_fault.h"
#include "virtual/cluster/cluster_nodes.h"
#include "virtual/cluster/simulated_scaler.h"
#include "virtual/cluster/virtual_network.h"
#include "virtual/world/simulated_device.h"

namespace foliot {

struct ClusterSimulationOptions {
  std::string policy;
  Controller::PolicyFactory make_policy;
  ControllerOptions controller;

  uint64_t seed = 1;
  uint32_t controllers = 1;  // of which one leads; the store of its record fails at times, too
  uint32_t workers = 3;
  uint32_t frontends = 2;
  uint64_t page_bytes = uint64_t{16} << 20;
  uint64_t page_cache_bytes = uint64_t{512} << 20;  // of each worker
  SimulatedLanes lanes{};                           // likewise
  // Likewise. With several, models have operators at which batches can be cut.
  uint32_t contexts = 1;
  NoiseOptions noise;
  NetworkOptions network;
  // Clocks are ahead of one another by up to `clock_offset`, and run up to so many parts in
  // a million faster or slower than time.
  Duration clock_offset = Duration::seconds(1000);
  uint32_t clock_drift_per_million = 100;

  // So many of the requests are runs of a pipeline over the first four models: a stage, a second
  // that half of the runs visit, a third that takes the second's outputs or else the first's, and
  // a fourth beside them.
  double pipeline_share = 0;
  // So many of the others are runs of another one, again over the first four models: a stage that counts up to four
  // elements, two that are visited for each of them, a third that half of the runs visit, on what the first of these
  // computed for the same element, and a last one that takes what was computed for all of them. One run in a
  // hundred counts more elements than there may be.
  double elements_share = 0;
  // So many of the others are calls of a task whose variants are the first two models, of one row to three, of which
  // half ask for the second's accuracy.
  double task_share = 0;

  MakeScaler make_scaler{};  // of the models of pipelines; empty: there is none

  Duration duration = Duration::seconds(8);
  RandomClusterFaults faults;
  bool faults_of_controllers = false;  // they happen to no other node, and the store does not fail
  Duration settle_max = Duration::seconds(45);
  SimulatedFrontendOptions frontend;
};

struct ClusterSimulationReport {
  uint64_t seed = 0;
  ClusterTally requests;
  std::map<ClusterFaultKind, uint64_t> faults;
  uint64_t links = 0;  // that were made
  uint64_t cuts = 0;   // INFERs that leave their batch unfinished
  Duration settled;    // after the last fault
  Duration simulated;
  uint64_t events = 0;
  uint64_t event_hash = 0;
};

// Errors: kInvalidArgument naming what is wrong with options or workload; kInternal naming
// the seed, and what promise was broken when.
Result<ClusterSimulationReport> simulate_cluster(const ClusterSimulationOptions& options, const Workload& workload,
                                                 const ProfileTable& profiles);

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_CLUSTER_CLUSTER_SIMULATION_H_
