// Batch: what a device is to run next, as a planner of this policy has chosen it.
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_BATCH_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_BATCH_H_

#include <cstdint>

#include "control/policies/common/request_queue.h"
#include "foundation/base/time.h"
#include "foundation/core/model_info.h"

namespace foliot::foliot_policy {

// Requests [first, first + rows) of a queue, as one EXEC.
struct Batch {
  TimePoint latest;  // when it has to start for its first request
  Duration cost;     // of EXEC: the device's time, divided by the copies that could run it
  double density = 0;
  bool keeps_share = false;  // its model asks for half of its share at most: others are left out first
  ModelId model;
  BucketId bucket;
  uint32_t batch_index = 0;
  uint32_t first = 0;
  uint32_t rows = 0;
  bool in_parts = false;     // it is to be run so (batch_parts.h)
  bool is_trial = false;     // of a width (width_trials.h)
  uint32_t lanes_max = ~0u;  // of those that it was chosen for: the others are left to requests of other models
  RequestQueue::Place head;  // of best effort: of the first of them
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_BATCH_H_
