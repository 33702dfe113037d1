#include "platform/clock.h"

#include <ctime>

namespace foliot {

TimePoint monotonic_now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return TimePoint::from_nanoseconds(int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec);
}

}  // namespace foliot
