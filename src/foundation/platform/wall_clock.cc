#include "foundation/platform/wall_clock.h"

#include <chrono>

namespace foliot {

TimePoint wall_now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return TimePoint::from_nanoseconds(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

}  // namespace foliot
