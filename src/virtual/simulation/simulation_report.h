// SimulationReport: the results of one policy under one workload. Refused counts as
// missed; latency counts from arrival. Warm-up is left out of everything but the
// series.
#ifndef FOLIOT_VIRTUAL_SIMULATION_SIMULATION_REPORT_H_
#define FOLIOT_VIRTUAL_SIMULATION_SIMULATION_REPORT_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "foundation/base/histogram.h"
#include "foundation/base/time.h"
#include "foundation/core/action.h"
#include "foundation/core/request.h"
#include "virtual/world/fault.h"

namespace foliot {

// What came of requests: of all, of one group of models, or of one tenant.
struct RequestTally {
  std::string name;
  uint64_t offered = 0;
  uint64_t good = 0;  // answered by their deadline; of best effort: answered
  // Answered by their deadline within the measured time, whenever they came: so many of
  // them in so much time are a rate, while `good` counts answers after its end, too.
  uint64_t good_within = 0;
  // The rest: late ones among them, by Refusal.
  std::map<Refusal, uint64_t> missed;
  // Of the missed: those that were planned to be in time, and were not, because an
  // action took or waited longer than predicted.
  uint64_t mispredicted = 0;
  uint64_t cold_starts = 0;  // answered, and not loaded anywhere when they came
  Histogram latency;         // of the answered, in time and late

  uint64_t missed_total() const { return offered - good; }
  // 1 if nothing was offered.
  double attainment() const { return offered == 0 ? 1 : static_cast<double>(good) / static_cast<double>(offered); }
};

// When requests with a deadline were refused. One that is not refused within kDecisionPart of its time (from its
// arrival to its deadline) is admitted.
struct RefusalTally {
  static constexpr double kDecisionPart = 0.1;
  // Of refused requests, from arrival to refusal, as a share of their time: one second stands for all of it.
  Histogram refused_after;
  uint64_t admitted = 0;
  uint64_t admitted_missed = 0;  // of these: refused later, or answered late

  double refused_after_share(double quantile) const { return refused_after.quantile(quantile).to_seconds(); }
  double broken_share() const {
    return admitted == 0 ? 0 : static_cast<double>(admitted_missed) / static_cast<double>(admitted);
  }
};

// Latency and counts of one group within one interval.
struct IntervalTally {
  uint64_t offered = 0;  // that came in it
  uint64_t good = 0;     // that were answered in it, by their deadline
  uint64_t missed = 0;   // that were refused or answered late in it
  uint64_t cold_starts = 0;
  Duration latency_p50, latency_p99, latency_max;  // of those answered in it
};

// One row of the time series.
struct SimulationInterval {
  Duration begin;  // since the beginning of the run; its length is SimulationReport::interval
  IntervalTally all;
  std::vector<IntervalTally> groups;  // by group
  uint64_t loads = 0;                 // LOADs that ended in it
  uint32_t active_models = 0;         // models that were asked for
  uint32_t cold_models = 0;           // models with at least one cold start
  double batch_size_mean = 0;         // rows per EXEC
  double device_busy = 0;             // share of all devices' time in EXEC
  double load_busy = 0;               // share of all devices' time in LOAD
};

// Expected against measured: durations or completions of one kind of action.
struct PredictionError {
  Histogram over;   // expected longer than it was, by so much
  Histogram under;  // the other way round
};

// What came of requests around faults: of those that arrived from the beginning of a
// fault until kFaultAftermath after its end.
struct FaultTally {
  struct Bin {
    uint64_t offered = 0;
    uint64_t good = 0;
  };
  uint64_t offered = 0;
  uint64_t good = 0;
  std::vector<std::vector<Bin>> bins;  // by fault; of kFaultBin each

  double attainment() const { return offered == 0 ? 1 : static_cast<double>(good) / static_cast<double>(offered); }
};
inline constexpr Duration kFaultAftermath = Duration::seconds(1);
inline constexpr Duration kFaultBin = Duration::milliseconds(100);

// The same run as it was, and with its faults announced (virtual/world/fault.h): what could
// still be met.
struct FaultReport {
  std::vector<Fault> faults;
  FaultTally met;
  FaultTally meetable;

  // Of what could still be met.
  double attainment() const { return meetable.good == 0 ? 1 : std::min(1.0, ratio()); }
  // From the beginning of a fault until nothing was missed any more that could have
  // been met, but for one request in twenty; in steps of kFaultBin.
  Duration recovery(size_t fault) const;
  Duration recovery_max() const;

 private:
  double ratio() const { return static_cast<double>(met.good) / static_cast<double>(meetable.good); }
};

struct SimulationReport {
  std::string policy;
  uint64_t seed = 0;
  uint32_t devices = 0;
  std::optional<double> dollars_per_hour;  // of all devices, where their prices are known
  Duration warm_up;
  Duration measured;   // duration less warm_up: what rates are per second of
  Duration simulated;  // until the last answer
  Duration real;       // that it took; set by the caller, which has a clock
  Duration interval;

  RequestTally all;
  RefusalTally refusals;                // of all but visits of pipelines
  std::vector<RequestTally> groups;     // by group of the workload
  std::vector<RequestTally> pipelines;  // runs, by pipeline of the workload
  std::vector<RequestTally> tenants;    // in the order of the streams that name them
  std::vector<SimulationInterval> series;

  PredictionError infer_duration, load_duration;
  PredictionError infer_completion;  // when it would be over, seen when it was sent
  // batch_sizes[n]: EXECs with n rows.
  std::array<uint64_t, kBatchSizeMax + 1> batch_sizes{};
  uint64_t execs = 0;
  uint64_t loads = 0;
  uint64_t unloads = 0;
  uint64_t actions_refused = 0;  // by workers
  Duration exec_time;            // of all devices together
  Duration load_time;

  std::optional<FaultReport> faults;  // if there were any

  uint64_t requests = 0;  // in all, warm-up included
  uint64_t events = 0;
  // Of all that happened: equal runs have equal hashes.
  uint64_t event_hash = 0;
  uint64_t proposals_rejected = 0;

  double offered_rate() const { return static_cast<double>(all.offered) / measured.to_seconds(); }
  double goodput() const { return static_cast<double>(all.good_within) / measured.to_seconds(); }
  double batch_size_mean() const;
  // Share of all devices' time in EXEC.
  double device_busy() const { return exec_time.to_seconds() / (measured.to_seconds() * devices); }
  double requests_per_real_second() const {
    return real > Duration() ? static_cast<double>(requests) / real.to_seconds() : 0;
  }
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_SIMULATION_SIMULATION_REPORT_H_
