// Cases of products with weights of few bits in blocks.
#ifndef FOLIOT_ENGINE_DEVICE_CONFORMANCE_BLOCK_CASES_H_
#define FOLIOT_ENGINE_DEVICE_CONFORMANCE_BLOCK_CASES_H_

#include <vector>

#include "engine/device/conformance/operator_cases.h"

namespace foliot {

std::vector<OperatorCase> block_cases();

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CONFORMANCE_BLOCK_CASES_H_
