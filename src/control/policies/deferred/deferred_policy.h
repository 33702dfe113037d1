// DeferredPolicy: deferred batch scheduling (Symphony: Chen et al., 2023, section 3).
//
// A model's batch waits until its frontrun point, the last instant at which it
// could still start with one more request in it: deadline of its head - L(b + 1).
// From then on it is a candidate; a free device takes the candidate with the
// smallest invalid-after, the last instant at which it can start at all: deadline
// of its head - L(b). A batch that cannot grow is a candidate at once. So devices
// that are not needed stay idle, and batches are as large as deadlines allow.
//
// Window drop: where the deadline of its head keeps a batch smaller than the load
// asks for, and those behind it fill a larger one, they go without it. The batch
// size that is asked for follows from how much of the devices' time the requests
// of the last second would take in the largest batches.
//
// Differences: L is a step function here, so that the frontrun point may fall on
// the invalid-after, which leaves no time for what a device is busy with; a batch
// is a candidate `slack` before that at least. It is one on the devices that hold
// its model, and not on all. Best-effort requests do not wait: they are candidates
// at once, after all others.
#ifndef FOLIOT_CONTROL_POLICIES_DEFERRED_DEFERRED_POLICY_H_
#define FOLIOT_CONTROL_POLICIES_DEFERRED_DEFERRED_POLICY_H_

#include <memory>

#include "control/controller/policy.h"

namespace foliot::deferred {

struct DeferredOptions {
  double slack = 2;  // times L(b)
};

// A factory for Controller.
std::unique_ptr<Policy> make_deferred_policy(const Cluster& cluster, const DeferredOptions& options = {});

}  // namespace foliot::deferred

#endif  // FOLIOT_CONTROL_POLICIES_DEFERRED_DEFERRED_POLICY_H_
