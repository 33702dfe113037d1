#include "foundation/platform/clock.h"

#include <ctime>

namespace foliot {

TimePoint monotonic_now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return TimePoint::from_nanoseconds(int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec);
}

Duration thread_processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return Duration::seconds(time.tv_sec) + Duration::nanoseconds(time.tv_nsec);
}

}  // namespace foliot
