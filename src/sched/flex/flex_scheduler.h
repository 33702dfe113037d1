// Flex of SHEPHERD (Zhang et al., NSDI 2023, section 5): of the batches that all
// models could run now, each the largest that still meets the deadline of the
// request that is due first, the largest goes first.
//
// Flex also preempts a running batch for one that is 3.03 times larger. A device
// here cannot give up an EXEC that it has begun, so that part is left out; with it
// goes Flex's bound on what an online policy can lose.
#ifndef FOLIOT_SCHED_FLEX_FLEX_SCHEDULER_H_
#define FOLIOT_SCHED_FLEX_FLEX_SCHEDULER_H_

#include <memory>

#include "controller/scheduler.h"

namespace foliot::flex {

// A factory for Controller.
std::unique_ptr<Scheduler> make_flex_scheduler(const Cluster& cluster);

}  // namespace foliot::flex

#endif  // FOLIOT_SCHED_FLEX_FLEX_SCHEDULER_H_
