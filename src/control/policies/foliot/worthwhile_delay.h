// worthwhile_delay(): for how long a batch that is not full waits for more rows, where its model leaves that to the
// policy
// (`batch_delay = "auto"`).
//
// Each row that joins a batch saves what a batch takes whatever its size: the fixed part of its EXEC. For that it has
// all requests of the batch wait. A delay is worth it as long as each millisecond of the device that it saves costs the
// requests no more than some milliseconds together, and each of them a small part of the time that two of its model's
// largest batches leave it.
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_WORTHWHILE_DELAY_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_WORTHWHILE_DELAY_H_

#include <cstdint>
#include <span>

#include "foundation/base/time.h"

namespace foliot::foliot_policy {

struct DelayedBatch {
  std::span<const uint32_t> sizes;  // ascending, of the model's batches
  std::span<const Duration> execs;  // of each size
  double rate;                      // at which rows come, per second
  Duration time;                    // from the first one's arrival to its deadline
};

// 0 if it is not worth it.
Duration worthwhile_delay(const DelayedBatch& batch);

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_WORTHWHILE_DELAY_H_
