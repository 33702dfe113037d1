// Plan check: validates a plan from outside before it is used.
#ifndef FOLIOT_DEVICE_CPU_PLAN_CHECK_H_
#define FOLIOT_DEVICE_CPU_PLAN_CHECK_H_

#include <cstdint>

#include "base/status.h"
#include "device/plan.h"

namespace foliot {

// Whether all indices are in range, every tensor lies within its place and is as
// large as its layout says, and every operator has the inputs, outputs and
// attributes that its kind demands. Errors: kInvalidArgument.
Status check_plan(const Plan& plan, uint64_t weights_bytes);

}  // namespace foliot

#endif  // FOLIOT_DEVICE_CPU_PLAN_CHECK_H_
