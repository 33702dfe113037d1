// OverlapPolicy: Abacus (SC 2021, section 6). Queries of several models run beside each
// other on the lanes of a device, in operator groups whose durations are predicted
// (DurationModel::together()).
//
// A group has the query with the least headroom, with all its remaining operators, and of
// the next ones as many whole queries, and then operators, as keep the group within that
// headroom (group_search.h); one of each model, up to four, and no two that gain less than
// 5 % from running beside each other. A query that cannot be met even alone is refused, one
// that was begun is given up.
//
// Groups follow each other by windows: the next one may begin when this one is expected to
// have ended, or, where either is one query on all lanes, when the lanes are free. It is
// chosen while this one runs, shortly before its end; where this one leaves a query
// unfinished, once that query's part is over.
//
// Requests are not batched, as there; each is one query. A device of one lane or one
// context runs them one at a time, in the order of deadlines.
#ifndef FOLIOT_CONTROL_POLICIES_OVERLAP_OVERLAP_POLICY_H_
#define FOLIOT_CONTROL_POLICIES_OVERLAP_OVERLAP_POLICY_H_

#include <memory>

#include "control/controller/policy.h"

namespace foliot::overlap {

// A factory for Controller.
std::unique_ptr<Policy> make_overlap_policy(const Cluster& cluster);

}  // namespace foliot::overlap

#endif  // FOLIOT_CONTROL_POLICIES_OVERLAP_OVERLAP_POLICY_H_
