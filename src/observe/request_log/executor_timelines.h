// ExecutorTimelines: when the executors of devices are expected to begin what they are sent,
// from what they were sent before.
//
// It allocates only for a device's first action on a lane.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_OBSERVE_REQUEST_LOG_EXECUTOR_TIMELINES_H_
#define FOLIOT_OBSERVE_REQUEST_LOG_EXECUTOR_TIMELINES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "foundation/base/time.h"
#include "foundation/core/action.h"

namespace foliot {

class ExecutorTimelines {
 public:
  // When LOAD or EXEC is expected to begin; infinite for an UNLOAD, which takes no time.
  TimePoint send(const Action& action, TimePoint now);
  // REQUIRES: it was sent.
  void end(const Action& action, const Outcome& outcome);

 private:
  // Work sent to one executor and not yet over.
  struct Timeline {
    TimePoint begun;  // when the first of it began, as far as is known
    Duration pending;
    uint32_t count = 0;
  };
  // Of the executors that an action takes: LOAD's, or EXEC's of its lanes.
  std::span<Timeline> timelines(const Action& action);

  std::vector<std::vector<Timeline>> timelines_;  // by DeviceId: LOAD, then EXEC on each lane
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_REQUEST_LOG_EXECUTOR_TIMELINES_H_
