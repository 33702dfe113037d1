// A fleet in virtual time: workers of several kinds, on which variants of tasks are loaded, with
// the policy of variants and the autoscalers that decide about them (rooms variants, fleet).
//
// A worker has shares: an instance takes one, and has so much of the worker's throughput. On a
// kind with one executor (a GPU), the instances of a worker run one batch at a time, the
// longest waiting first, and so disturb each other; on others each share runs by itself. A
// batch is what waits, up to the variant's largest batch, and takes up to 5 % longer than
// profiled. Messages take no time.
#ifndef FOLIOT_VIRTUAL_EXPERIMENTS_FLEET_SIMULATION_H_
#define FOLIOT_VIRTUAL_EXPERIMENTS_FLEET_SIMULATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "control/fleet/scalers/model_autoscaler.h"
#include "control/variants/variant.h"
#include "foundation/base/histogram.h"
#include "foundation/base/time.h"

namespace foliot {

struct FleetWorkers {
  std::string kind;
  uint32_t count = 1;  // at the beginning
  uint32_t least = 1;
  uint32_t most = 1;
  uint32_t shares = 1;     // of each
  uint32_t executors = 1;  // of each: 1, or as many as shares
  MicroDollarsPerSecond price = 0;
};

struct FleetTask {
  std::string name;
  Duration slo;
  double accuracy = 0;
  std::vector<Variant> variants;  // that the system may use; price and saturation are of a share
  // So many instances of the first variant at the beginning, where there is room.
  uint32_t start = 0;
};

struct FleetSystem {
  std::string policy = "infaas";  // of variants
  // Queries that are predicted late are refused at once; else they wait, however late.
  bool refuse = false;
  std::string solver;  // "greedy", "greedy_mixed", "ilp"; empty: the instances stay as they are
  double headroom = 1.05;
  bool scale_down = true;
  bool scale_workers = false;
  // All variants are loaded on all workers, and cost nothing there.
  bool load_all = false;
};

struct FleetQuery {
  Duration at;
  uint32_t task = 0;
};

struct FleetReport {
  uint64_t offered = 0;
  uint64_t in_time = 0;
  uint64_t late = 0;
  uint64_t refused = 0;
  uint64_t loads = 0;
  double accuracy = 0;          // mean, of what was in time
  uint64_t below_accuracy = 0;  // answered by a variant that is less accurate than asked
  double worker_dollars = 0;    // all workers, while they are there or start
  double instance_dollars = 0;  // the loaded instances' shares
  double utilisation = 0;       // of executors, in the mean
  uint32_t workers_most = 0;
  std::vector<Histogram> latency;    // of what was answered, by task
  std::vector<uint64_t> in_time_of;  // by task
  std::vector<uint64_t> offered_of;  // by task
  Duration length;

  double attainment() const { return static_cast<double>(in_time) / static_cast<double>(offered); }
  double violations() const { return 1 - attainment(); }
  double goodput() const { return static_cast<double>(in_time) / length.to_seconds(); }
};

// REQUIRES: queries ascend; a known policy and solver.
FleetReport simulate_fleet(const FleetSystem& system, const std::vector<FleetWorkers>& workers,
                           const std::vector<FleetTask>& tasks, const std::vector<FleetQuery>& queries, uint64_t seed);

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_EXPERIMENTS_FLEET_SIMULATION_H_
