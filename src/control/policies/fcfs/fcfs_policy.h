// FcfsPolicy: first come, first served, one request at a time, with query drop: the
// baseline of Abacus (section 7.1) and of Nexus before it. A device runs the request
// that came
// first of those whose models it holds; one that can no longer be met is refused.
// Requests are not batched, as there.
#ifndef FOLIOT_CONTROL_POLICIES_FCFS_FCFS_POLICY_H_
#define FOLIOT_CONTROL_POLICIES_FCFS_FCFS_POLICY_H_

#include <memory>

#include "control/controller/policy.h"
#include "control/policies/common/query_drop.h"

namespace foliot::fcfs {

// A factory for Controller.
std::unique_ptr<Policy> make_fcfs_policy(const Cluster& cluster, QueryDrop drop = QueryDrop::kUnmeetable);

}  // namespace foliot::fcfs

#endif  // FOLIOT_CONTROL_POLICIES_FCFS_FCFS_POLICY_H_
