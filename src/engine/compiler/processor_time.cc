#include "engine/compiler/processor_time.h"

#include <algorithm>

namespace foliot {

Duration read_clock(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return Duration::seconds(time.tv_sec) + Duration::nanoseconds(time.tv_nsec);
}

Duration ProcessorTime::elapsed() const {
  return std::max(read_clock(CLOCK_PROCESS_CPUTIME_ID) - process_, read_clock(CLOCK_THREAD_CPUTIME_ID) - thread_);
}

}  // namespace foliot
