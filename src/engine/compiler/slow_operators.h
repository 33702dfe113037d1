// Slow operators: those of a plan that take ten times as long as they should by what the
// machine reaches on plain operators (engine/compiler/operator_rates.h).
#ifndef FOLIOT_ENGINE_COMPILER_SLOW_OPERATORS_H_
#define FOLIOT_ENGINE_COMPILER_SLOW_OPERATORS_H_

#include <string>
#include <vector>

#include "engine/compiler/operator_rates.h"
#include "engine/compiler/plan_durations.h"
#include "engine/device/plan.h"
#include "foundation/base/time.h"

namespace foliot {

// No operator that takes less is slow: what it could gain is not worth a warning.
inline constexpr Duration kSlowOperatorMin = Duration::microseconds(200);

// A sentence for each of the four that take the longest, with the node's name, and one for
// the others.
std::vector<std::string> find_slow_operators(const Plan& plan, const PlanDurations& durations,
                                             const OperatorRates& rates);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_SLOW_OPERATORS_H_
