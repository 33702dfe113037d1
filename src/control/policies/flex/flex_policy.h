// FlexPolicy: Flex of SHEPHERD (Zhang et al., NSDI 2023, section 5): of the batches
// that all
// models could run now, each the largest that still meets the deadline of the
// request that is due first, the largest goes first.
//
// Flex also preempts: a batch that is 3.03 times larger than the one that runs takes its
// place, and what had run is lost. A device here finishes every EXEC that it has begun
// (docs/decisions/0025), so that part is left out, and with it goes Flex's bound on what an online policy can
// lose. It matters where a small batch is so long that a large one, which could have
// begun before, no longer can afterwards: with SLOs of little more than one EXEC, or
// with long models beside short ones. A batch that could wait loses nothing but the rest
// of one EXEC of less than a third of its rows.
#ifndef FOLIOT_CONTROL_POLICIES_FLEX_FLEX_POLICY_H_
#define FOLIOT_CONTROL_POLICIES_FLEX_FLEX_POLICY_H_

#include <memory>

#include "control/controller/policy.h"

namespace foliot::flex {

// A factory for Controller.
std::unique_ptr<Policy> make_flex_policy(const Cluster& cluster);

}  // namespace foliot::flex

#endif  // FOLIOT_CONTROL_POLICIES_FLEX_FLEX_POLICY_H_
