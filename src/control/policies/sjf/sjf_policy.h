// SjfPolicy: shortest job first, one request at a time, with query drop: the baseline
// of
// Abacus (section 7.1). A device runs the request with the shortest expected EXEC
// of those whose models it holds, and of equal ones the first that came; one that
// can no longer be met is refused. Requests are not batched, as there.
#ifndef FOLIOT_CONTROL_POLICIES_SJF_SJF_POLICY_H_
#define FOLIOT_CONTROL_POLICIES_SJF_SJF_POLICY_H_

#include <memory>

#include "control/controller/policy.h"
#include "control/policies/common/query_drop.h"

namespace foliot::sjf {

// A factory for Controller.
std::unique_ptr<Policy> make_sjf_policy(const Cluster& cluster, QueryDrop drop = QueryDrop::kUnmeetable);

}  // namespace foliot::sjf

#endif  // FOLIOT_CONTROL_POLICIES_SJF_SJF_POLICY_H_
