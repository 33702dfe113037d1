// EdfPolicy: earliest deadline first, one request at a time, with query drop: the
// baseline of Abacus (section 7.1). A device runs the request with the earliest
// deadline of
// those whose models it holds; one that can no longer be met is refused. Requests
// are not batched, as there.
#ifndef FOLIOT_CONTROL_POLICIES_EDF_EDF_POLICY_H_
#define FOLIOT_CONTROL_POLICIES_EDF_EDF_POLICY_H_

#include <memory>

#include "control/controller/policy.h"
#include "control/policies/common/query_drop.h"

namespace foliot::edf {

// A factory for Controller.
std::unique_ptr<Policy> make_edf_policy(const Cluster& cluster, QueryDrop drop = QueryDrop::kUnmeetable);

}  // namespace foliot::edf

#endif  // FOLIOT_CONTROL_POLICIES_EDF_EDF_POLICY_H_
