// ModelAutoscaler: how many instances of each variant a task has, decided once a second from
// what comes (the paper's sections 4.2.1 and 4.2.2). A Solver finds the instances; this decides
// when.
//
//   up    as soon as what the instances can take is less than `headroom` times what comes.
//         Where devices are missing, as much as they can take is loaded, and the shortage is
//         reported.
//   down  when fewer or cheaper instances would do, for as long as the LOAD of what would be
//         unloaded takes (the paper's T_v), for the highest load of that time.
// Where a plan loads and unloads, the unloads wait until the LOADs must be over, and are
// cancelled if the load rises meanwhile.
//
// Threading: one owner, not the controller's thread: solvers take milliseconds. Time is an
// argument.
#ifndef FOLIOT_CONTROL_FLEET_SCALERS_MODEL_AUTOSCALER_H_
#define FOLIOT_CONTROL_FLEET_SCALERS_MODEL_AUTOSCALER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "control/fleet/scalers/scaling_problem.h"
#include "control/fleet/scalers/solver.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct ModelAutoscalerOptions {
  // The paper's slack-threshold: swept from 1.01 to 1.1.
  double headroom = 1.05;
  // Steps are so far apart. The paper's; longer ones follow spikes late.
  Duration interval = Duration::seconds(1);
  Duration solver_limit = Duration::milliseconds(500);
  bool scale_down = true;
};

struct ScalingStep {
  // To be loaded and unloaded now; empty: nothing changes.
  ScalingDeltas deltas;
  // kResourceExhausted: devices are missing. kUnavailable: the solver. kInvalidArgument.
  Status status;
};

class ModelAutoscaler {
 public:
  // `solver` outlives it.
  explicit ModelAutoscaler(Solver& solver, const ModelAutoscalerOptions& options = {});

  // `seen.load` is what comes, without headroom; `running` counts what is loading. REQUIRES: the
  // variants are those of the last step; `now` never goes back.
  ScalingStep step(const ScalingProblem& seen, TimePoint now);

 private:
  struct Retirement {
    size_t variant;
    int64_t count;
    TimePoint due;
  };
  ScalingProblem without_retiring(const ScalingProblem& seen) const;
  ScalingStep scale_up(const ScalingProblem& problem, TimePoint now);
  ScalingStep scale_down(const ScalingProblem& problem, TimePoint now);
  // As much of the load as the devices can take, found by bisection.
  std::optional<ScalingPlan> most_that_fits(ScalingProblem problem);
  // What of the plan is done now; the rest waits in retiring_.
  ScalingDeltas begin(const ScalingProblem& problem, const ScalingPlan& plan, TimePoint now);
  void take_due(ScalingDeltas& deltas, TimePoint now);

  Solver& solver_;
  const ModelAutoscalerOptions options_;
  std::vector<Retirement> retiring_;
  std::optional<TimePoint> down_since_;
  double peak_ = 0;  // since then
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_FLEET_SCALERS_MODEL_AUTOSCALER_H_
