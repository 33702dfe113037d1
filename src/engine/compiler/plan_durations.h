// PlanDurations: how long a plan takes, and each of its operators by itself.
#ifndef FOLIOT_ENGINE_COMPILER_PLAN_DURATIONS_H_
#define FOLIOT_ENGINE_COMPILER_PLAN_DURATIONS_H_

#include <cstddef>
#include <vector>

#include "engine/compiler/program_runner.h"
#include "engine/device/plan.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct PlanDurations {
  Duration whole;
  std::vector<Duration> operators;  // by position in Plan::operators

  // Of each operator, the share of their sum that is over with it.
  std::vector<double> ends() const;
};

// Runs the plan at `position` of the runner's program up to `runs` times on zeros, fewer where it takes long, and takes
// the shortest durations. Errors: those of the device.
Result<PlanDurations> measure_plan(const Plan& plan, size_t position, ProgramRunner& runner, size_t runs = 5);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_PLAN_DURATIONS_H_
