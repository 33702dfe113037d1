// wall_now(): the time of day since 1970 (UTC), which can step. For instants that people read or that outlive the
// process; durations and deadlines are of monotonic_now().
#ifndef FOLIOT_FOUNDATION_PLATFORM_WALL_CLOCK_H_
#define FOLIOT_FOUNDATION_PLATFORM_WALL_CLOCK_H_

#include "foundation/base/time.h"

namespace foliot {

// Threading: any thread.
TimePoint wall_now();

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_WALL_CLOCK_H_
