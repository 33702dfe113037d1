// NodeClock: the clock of one simulated machine: ahead of virtual time by an offset, and
// faster or slower by some parts per million. It never goes back.
#ifndef FOLIOT_VIRTUAL_WORLD_NODE_CLOCK_H_
#define FOLIOT_VIRTUAL_WORLD_NODE_CLOCK_H_

#include <cstdint>

#include "foundation/base/time.h"

namespace foliot {

class NodeClock {
 public:
  // Shows virtual time itself.
  NodeClock() = default;
  NodeClock(Duration offset, int64_t drift_per_million) : offset_(offset), drift_(drift_per_million) {}

  // What the clock shows at this instant of virtual time.
  TimePoint local(TimePoint instant) const {
    if (instant.is_infinite()) return instant;
    return instant + offset_ + Duration::nanoseconds(instant.nanoseconds() * drift_ / kMillion);
  }
  // The first instant at which the clock shows `local` or more. Infinite if that is
  // decades away.
  TimePoint instant(TimePoint local_time) const {
    if (local_time.nanoseconds() > kFar) return TimePoint::infinite_future();
    const int64_t shown = (local_time - offset_).nanoseconds();
    const int64_t below = drift_ < 0 ? -drift_ : drift_;
    TimePoint guess = TimePoint::from_nanoseconds(shown - shown / (kMillion + drift_) * drift_ - below - 2);
    while (local(guess) < local_time) guess += Duration::nanoseconds(1 + (local_time - local(guess)).nanoseconds() / 2);
    return guess;
  }

 private:
  static constexpr int64_t kMillion = 1'000'000;
  static constexpr int64_t kFar = int64_t{1} << 60;

  Duration offset_;
  int64_t drift_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_WORLD_NODE_CLOCK_H_
