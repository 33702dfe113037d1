// InferlinePolicy: the centralised batched queue that InferLine's planner takes for granted
// (section 4.3). A device that is idle takes what waits of a model that it holds, oldest first and
// at most the largest batch, and never waits for more. Models take turns in the order in which
// their first requests came.
//
// The thesis leaves open what becomes of late requests. Here, as under the other baselines, one
// that can no longer be met is refused, and a batch begins with the first request that is not
// late in it: without that, an overload makes every request late.
//
// Replicas are pinned where targets say so (control/controller/targets.h: copies, kinds, batch_most), as
// `foliot plan` makes them. Without targets, models are loaded on demand.
#ifndef FOLIOT_CONTROL_POLICIES_INFERLINE_INFERLINE_POLICY_H_
#define FOLIOT_CONTROL_POLICIES_INFERLINE_INFERLINE_POLICY_H_

#include <memory>

#include "control/controller/policy.h"

namespace foliot::inferline {

// A factory for Controller.
std::unique_ptr<Policy> make_inferline_policy(const Cluster& cluster);

}  // namespace foliot::inferline

#endif  // FOLIOT_CONTROL_POLICIES_INFERLINE_INFERLINE_POLICY_H_
