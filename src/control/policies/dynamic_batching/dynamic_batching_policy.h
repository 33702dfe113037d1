// DynamicBatchingPolicy: Triton Inference Server's dynamic batcher. Requests of a model
// wait in the order of their arrival until they fill the largest preferred batch size
// or the first
// has waited for `queue_delay_max`; then as many go as the largest preferred size
// that they fill, or, when the delay is over and they fill none, all of them.
// Models take turns in the order in which their first requests came.
//
// As its users would set it up: preferred sizes are the compiled ones from 4 on (a
// model that has none: its largest), the delay 1 ms, and a queue timeout with which
// a request is not put into a batch that it would be late in, and is refused when
// it can no longer be met.
#ifndef FOLIOT_CONTROL_POLICIES_DYNAMIC_BATCHING_DYNAMIC_BATCHING_POLICY_H_
#define FOLIOT_CONTROL_POLICIES_DYNAMIC_BATCHING_DYNAMIC_BATCHING_POLICY_H_

#include <cstdint>
#include <memory>

#include "control/controller/policy.h"

namespace foliot::dynamic_batching {

struct DynamicBatchingOptions {
  // The smallest compiled batch size that is preferred.
  uint32_t preferred_from = 4;
  Duration queue_delay_max = Duration::milliseconds(1);
};

// A factory for Controller.
std::unique_ptr<Policy> make_dynamic_batching_policy(const Cluster& cluster,
                                                     const DynamicBatchingOptions& options = {});

}  // namespace foliot::dynamic_batching

#endif  // FOLIOT_CONTROL_POLICIES_DYNAMIC_BATCHING_DYNAMIC_BATCHING_POLICY_H_
