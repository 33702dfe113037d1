#include "engine/compiler/plan_durations.h"

#include <algorithm>
#include <cstdint>

namespace foliot {
namespace {

// No other run begins once they have taken so long.
constexpr Duration kTimeMax = Duration::milliseconds(200);

}  // namespace

std::vector<double> PlanDurations::ends() const {
  std::vector<double> ends;
  Duration until;
  // None takes nothing, so that the sum is above 0.
  for (const Duration taken : operators) {
    until += std::max(taken, Duration::nanoseconds(1));
    ends.push_back(until.to_seconds());
  }
  for (double& end : ends) end /= until.to_seconds();
  return ends;
}

// The shortest: what anything else on the machine added is not the operator's.
Result<PlanDurations> measure_plan(const Plan& plan, size_t position, ProgramRunner& runner, size_t runs) {
  PlanDurations shortest{.whole = Duration::max(),
                         .operators = std::vector<Duration>(plan.operators.size(), Duration::max())};
  runner.put_input(std::vector<std::byte>(plan.input_bytes));
  Duration spent;
  for (size_t run = 0; run == 0 || (run < runs && spent < kTimeMax); ++run) {
    FOLIOT_ASSIGN_OR_RETURN(const Duration whole, runner.run_range(position, {}));
    shortest.whole = std::min(shortest.whole, whole);
    spent += whole;
    for (uint32_t i = 0; i < plan.operators.size(); ++i) {
      FOLIOT_ASSIGN_OR_RETURN(const Duration taken, runner.run_range(position, {.first = i, .last = i + 1}));
      shortest.operators[i] = std::min(shortest.operators[i], taken);
    }
  }
  return shortest;
}

}  // namespace foliot
