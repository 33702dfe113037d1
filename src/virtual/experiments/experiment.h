// Experiments: policies compared in virtual time, in the settings of the Clockwork
// paper and in some of our own. Each is a function that simulates every policy in every
// cell of its setting, through an ExperimentRun, which keeps the results.
//
// What all experiments share: V100 profiles (Clockwork, Table 1); links of 50 us with
// a jitter of 20 us; for every policy the margin and the lookahead that are measured of
// each device; latency from a request's arrival to its answer; refused counts as missed.
#ifndef FOLIOT_VIRTUAL_EXPERIMENTS_EXPERIMENT_H_
#define FOLIOT_VIRTUAL_EXPERIMENTS_EXPERIMENT_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/policies/registry.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "virtual/bounds/clairvoyant_bound.h"
#include "virtual/bounds/fluid_estimate.h"
#include "virtual/experiments/result_table.h"
#include "virtual/simulation/simulation.h"

namespace foliot {

struct ExperimentOptions {
  std::vector<RegisteredPolicy> policies;
  uint64_t seed = 1;
  // Seconds instead of minutes: fewer cells, shorter simulations.
  bool quick = false;
  // Of each simulation, instead of the experiment's own.
  std::optional<Duration> duration;
  // Called now and then with what is being simulated, and the share in [0, 1] of the
  // experiment that is done.
  std::function<void(const std::string& step, double share)> progress;
};

// One figure: the paper's, the goal, and the result.
struct Finding {
  std::string what;
  std::string paper = "-";
  std::string goal = "-";
  std::string here;
  std::optional<bool> met{};  // nullopt: there is no goal, or it is for people to judge
};
// `met`, or nullopt where a figure is NaN, since its policy was not simulated.
std::optional<bool> verdict(bool met, std::initializer_list<double> figures);

// Fluid estimates of the goodput of groups of models, or of "all" of them.
using GoodputEstimates = std::map<std::string, double>;

class ExperimentRun {
 public:
  ExperimentRun(std::string name, ExperimentOptions options);

  const std::vector<RegisteredPolicy>& policies() const { return options_.policies; }
  // Of each simulation, where it was asked for.
  std::optional<Duration> duration() const { return options_.duration; }
  bool quick() const { return options_.quick; }
  uint64_t seed() const { return options_.seed; }
  // Which of two sizes to use.
  template <typename T>
  T size(T full, T quick) const {
    return options_.quick ? quick : full;
  }

  // How many simulations there will be; for the progress bar.
  void expect(size_t simulations) { expected_ = simulations; }
  // The policy in one cell of the experiment, named by `cell`. `setting` has all but
  // policy, controller and seed. Errors: those of foliot::simulate().
  Result<SimulationReport> simulate(const RegisteredPolicy& policy, SimulationOptions setting, const Workload& workload,
                                    const ResultTable::Row& cell);
  // What any policy could reach at most in that cell, with the same arrivals.
  // Errors: those of foliot::clairvoyant_bound().
  Result<ClairvoyantBound> clairvoyant(SimulationOptions setting, const Workload& workload,
                                       const ResultTable::Row& cell);
  // As simulate(), and rows for the report in the table "results": one for all requests,
  // and one for each group if there are several; beside the fluid estimates, and the
  // clairvoyant bound on the goodput of all.
  Result<SimulationReport> measure(const RegisteredPolicy& policy, const SimulationOptions& setting,
                                   const Workload& workload, const ResultTable::Row& cell,
                                   const GoodputEstimates& estimates, std::optional<double> bound = {});
  // Every policy, one after the other.
  Status compare(const SimulationOptions& setting, const Workload& workload, const ResultTable::Row& cell,
                 const GoodputEstimates& estimates, std::optional<double> bound = {});
  // Rows for the time series of a report in the table "series".
  void add_series(const Workload& workload, const SimulationReport& report);

  ResultTable& table(const std::string& name) { return tables_[name]; }
  // From "results": of all requests, or of the group that `cell` names.
  double result(const std::string& policy, ResultTable::Row cell, const std::string& column);
  void find(Finding finding) { findings_.push_back(std::move(finding)); }

  const std::vector<Finding>& findings() const { return findings_; }
  // DIR/NAME.json with everything, and DIR/NAME_TABLE.csv for each table.
  // Errors: kInvalidArgument naming a file that cannot be written.
  Status write(const std::string& folder);

 private:
  void shorten(SimulationOptions& setting) const;

  const std::string name_;
  const ExperimentOptions options_;
  size_t expected_ = 1;
  size_t simulated_ = 0;
  TimePoint begin_;
  std::map<std::string, ResultTable> tables_;
  std::vector<Finding> findings_;
};

// Copies of ResNet-50, which most of the paper's experiments use.
ModelGroup resnet50(std::string name, uint32_t count, std::optional<Duration> slo);
// Models of all profiles of the V100 table, `copies` of each. Each profile gets the
// same share of the rate, and `stream` says how it is spread over the copies.
Workload mixed_models(uint32_t copies, Duration slo, const Stream& stream);
// `workload` with all its rates times `factor`.
Workload scaled(Workload workload, double factor);
// The fluid estimate of a workload's open loops with V100 profiles.
FluidEstimate estimate_of(const Workload& workload, uint32_t devices);
// Its estimate of the goodput of all requests.
GoodputEstimates goodput_estimates(const Workload& workload, uint32_t devices);

struct Experiment {
  std::string name;
  std::string summary;
  Status (*run)(ExperimentRun& run);
  // Without --scheduler; empty: all.
  std::vector<std::string> policies;
};

Status run_figure_5(ExperimentRun& run);
Status run_figure_6(ExperimentRun& run);
Status run_figure_7(ExperimentRun& run);
Status run_figure_8(ExperimentRun& run);

Status run_figure_9(ExperimentRun& run);
Status run_memory_starved(ExperimentRun& run);
Status run_overload(ExperimentRun& run);
Status run_bounds(ExperimentRun& run);
Status run_overlap(ExperimentRun& run);
Status run_overlap_cluster(ExperimentRun& run);
Status run_lanes_64(ExperimentRun& run);
Status run_inferline_plan(ExperimentRun& run);
Status run_inferline_tune(ExperimentRun& run);
Status run_inferline_estimate(ExperimentRun& run);
Status run_inferline_attribution(ExperimentRun& run);
Status run_inferline_ds2(ExperimentRun& run);
Status run_inferline_shapes(ExperimentRun& run);
Status run_infaas_production(ExperimentRun& run);
Status run_infaas_scaling(ExperimentRun& run);
Status run_infaas_sharing(ExperimentRun& run);
Status run_infaas_overload(ExperimentRun& run);

const std::vector<Experiment>& experiments();

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_EXPERIMENTS_EXPERIMENT_H_
