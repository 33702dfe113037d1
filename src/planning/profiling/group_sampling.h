// Which operators of which models make up the samples that an OverlapPredictor learns from:
// instance-based sampling (Abacus, section 5.4). Groups are drawn as the policy makes them: some
// query ends, some may have just come, and what else is of them is anything.
#ifndef FOLIOT_PLANNING_PROFILING_GROUP_SAMPLING_H_
#define FOLIOT_PLANNING_PROFILING_GROUP_SAMPLING_H_

#include <cstdint>
#include <span>
#include <vector>

#include "foundation/base/random.h"
#include "foundation/core/exec_part.h"

namespace foliot {

// A range for each of some models of so many operators: 1 to all end with their last operator, 1
// to all begin with their first, what else is drawn; none is empty. REQUIRES: each has at least
// one operator. A model of fewer than three is always whole.
std::vector<OperatorRange> draw_ranges(std::span<const uint32_t> operators, Random& random);

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PROFILING_GROUP_SAMPLING_H_
