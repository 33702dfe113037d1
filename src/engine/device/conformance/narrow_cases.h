// Cases of operators with narrow types: bfloat16, and integers that stand for
// quantised reals.
#ifndef FOLIOT_ENGINE_DEVICE_CONFORMANCE_NARROW_CASES_H_
#define FOLIOT_ENGINE_DEVICE_CONFORMANCE_NARROW_CASES_H_

#include <vector>

#include "engine/device/conformance/operator_cases.h"

namespace foliot {

std::vector<OperatorCase> narrow_cases();

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CONFORMANCE_NARROW_CASES_H_
