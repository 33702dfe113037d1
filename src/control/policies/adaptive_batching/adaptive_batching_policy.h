// AdaptiveBatchingPolicy: adaptive batching (Clipper: Crankshaw et al., NSDI 2017,
// section 4.3).
//
// Each model on each device has a limit for its batches, found while it serves:
// additive increase until a batch takes longer than the latency objective, then a
// tenth less; or quantile regression of latency over batch size. A queue that is
// shorter than the limit waits for `batch_delay` for more (delayed batching). What
// waits is served in the order of arrival.
//
// As its users would set it up: the objective of an EXEC is half of the usual
// SLO, the median of those seen of late, since a request may first have to wait for
// the batch before its own; a model without SLOs grows to its largest batch. Limits become compiled
// sizes. A request that can no longer be met is refused, and one that would be
// late in the batch at hand is passed over; Clipper answers it with a default at
// its deadline, which is counted alike.
#ifndef FOLIOT_CONTROL_POLICIES_ADAPTIVE_BATCHING_ADAPTIVE_BATCHING_POLICY_H_
#define FOLIOT_CONTROL_POLICIES_ADAPTIVE_BATCHING_ADAPTIVE_BATCHING_POLICY_H_

#include <memory>

#include "control/controller/policy.h"
#include "control/policies/adaptive_batching/batch_limit.h"

namespace foliot::adaptive_batching {

struct AdaptiveBatchingOptions {
  Method method = Method::kAimd;
  Duration batch_delay = Duration::milliseconds(2);
  double objective_share = 0.5;  // of the SLO
};

// A factory for Controller.
std::unique_ptr<Policy> make_adaptive_batching_policy(const Cluster& cluster,
                                                      const AdaptiveBatchingOptions& options = {});

}  // namespace foliot::adaptive_batching

#endif  // FOLIOT_CONTROL_POLICIES_ADAPTIVE_BATCHING_ADAPTIVE_BATCHING_POLICY_H_
