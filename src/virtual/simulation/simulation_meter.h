// SimulationMeter: watches a simulation and fills its report.
//
// Threading: the loop's.
#ifndef FOLIOT_VIRTUAL_SIMULATION_SIMULATION_METER_H_
#define FOLIOT_VIRTUAL_SIMULATION_SIMULATION_METER_H_

#include <cstdint>
#include <map>
#include <vector>

#include "control/controller/cluster.h"
#include "foundation/base/flat_map.h"
#include "foundation/base/histogram.h"
#include "foundation/core/observer.h"
#include "load/workload/workload.h"
#include "virtual/simulation/simulation_report.h"

namespace foliot {

struct SimulationMeterOptions {
  uint32_t devices = 1;
  Duration warm_up;
  Duration duration;
  Duration interval;
  std::vector<Fault> faults{};
};

class SimulationMeter : public Observer {
 public:
  // `cluster` outlives the meter.
  SimulationMeter(const SimulationMeterOptions& options, const Workload& workload, const Cluster& cluster);

  // Nothing that happened before `begin` counts.
  void begin(TimePoint begin);
  // The current interval is over. To be called at the end of each but the last,
  // in order; the last one also takes what is answered after the last request.
  void end_interval();
  const FaultTally& faults() const { return faults_; }
  // After the last answer. The report's counts, series and histograms are
  // complete; what only the simulation knows is left to it.
  SimulationReport finish();

  void on_request(const Request& request, TimePoint now) override;
  void on_action(const Action& action, TimePoint now) override;
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override;
  void on_completion(const Completion& completion, TimePoint now) override;
  // Runs count for all and for their pipeline; their visits count for their models' groups only.
  void on_run(const Request& request, const PipelineInfo* pipeline, TimePoint now) override;
  void on_run_over(const Completion& completion, TimePoint now) override;

 private:
  // What IntervalTally is made from.
  struct Live {
    uint64_t offered = 0;
    uint64_t good = 0;
    uint64_t missed = 0;
    uint64_t cold_starts = 0;
    Histogram latency;
  };
  // By interval; an action may end after the interval that it ran in.
  struct Busy {
    Duration exec;
    Duration load;
    uint64_t execs = 0;
    uint64_t rows = 0;
    uint64_t loads = 0;
  };
  bool counts(TimePoint at) const { return at >= measured_begin_ && at < measured_end_; }
  Duration within_measured(TimePoint start, TimePoint end) const;
  // A request has come, or has been answered in time.
  void tally_faults(Duration arrival, bool good);
  void record_busy(const Outcome& outcome, uint32_t rows);
  void record_errors(const Action& action, const Outcome& outcome);
  bool is_visit(RequestId request) const;
  void tally_within(const Completion& completion, bool visit);
  void tally_refusal(const Completion& completion, TimePoint now);
  static void tally(RequestTally& to, const Completion& completion, bool mispredicted);
  static void tally(Live& to, const Completion& completion);
  static IntervalTally take(Live& live);

  const SimulationMeterOptions options_;
  const std::vector<uint32_t> group_of_model_;
  const Cluster& cluster_;
  SimulationReport report_;
  FaultTally faults_;
  TimePoint begin_ = TimePoint::infinite_future();
  TimePoint measured_begin_ = TimePoint::infinite_future();
  TimePoint measured_end_ = TimePoint::infinite_future();

  Live live_;
  std::vector<Live> live_groups_;
  std::vector<Busy> busy_;
  // The interval in which a model was last asked for, or started cold; from 1.
  std::vector<uint32_t> asked_in_, cold_in_;
  uint32_t asked_models_ = 0;
  uint32_t cold_models_ = 0;
  std::map<TenantId, uint32_t> tenants_;            // positions in the report
  FlatMap<RequestId, uint32_t> tenant_of_request_;  // those
  // Requests that an action which a worker refused was to answer.
  FlatMap<RequestId, uint8_t> returned_;
  FlatMap<ActionId, TimePoint> expected_completions_;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_SIMULATION_SIMULATION_METER_H_
