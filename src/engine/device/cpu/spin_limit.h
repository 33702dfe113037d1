// SpinLimit: how long a thread that waits for another spins before it sleeps, from what its last waits were.
//
// To sleep and be woken takes 5 to 50 us. So where cores are free a thread spins for longer than most operators take
// that one thread computes alone. A thread that lost its core while it spun leaves it sooner, for other processes want
// it. Where waits are long nevertheless, since the other thread has no core, it does not spin at all.
//
// Threading: of one thread.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_SPIN_LIMIT_H_
#define FOLIOT_ENGINE_DEVICE_CPU_SPIN_LIMIT_H_

#include <algorithm>
#include <cstdint>

#include "foundation/base/time.h"

namespace foliot {

class SpinLimit {
 public:
  static constexpr Duration kSpinAlone = Duration::milliseconds(1);
  static constexpr Duration kSpinBesideOthers = Duration::microseconds(100);
  // A spinning thread looks at the clock each microsecond or so. If the last look was so long ago, another process had
  // its core: an interrupt or a thread of the kernel takes less, a time slice more.
  static constexpr Duration kLostCore = Duration::microseconds(500);

  Duration longest() const { return long_waits_ < kLongWaits ? short_wait() : Duration(); }

  // A wait is over that took so long, spinning or asleep.
  void waited(Duration duration, bool lost_core) {
    long_waits_ =
        duration > short_wait() ? std::min(long_waits_ + 1, kLongWaitsMax) : long_waits_ - std::min(long_waits_, 1u);
    beside_others_ = lost_core ? kRemembered : beside_others_ - std::min(beside_others_, 1u);
  }

 private:
  // After so many long waits in a row, or more of them than short ones, it does not spin.
  static constexpr uint32_t kLongWaits = 4, kLongWaitsMax = 8;
  // As many waits as an EXEC has, or some EXECs.
  static constexpr uint32_t kRemembered = 100;

  Duration short_wait() const { return beside_others_ > 0 ? kSpinBesideOthers : kSpinAlone; }

  uint32_t long_waits_ = 0;
  uint32_t beside_others_ = 0;  // for how many waits more it counts with others
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_SPIN_LIMIT_H_
