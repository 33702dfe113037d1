// Parker: one thread sleeps until an instant of monotonic_now(), or until any
// other thread wakes it.
//
// unpark() leaves a token and park_until() takes it, so a wake-up that comes
// first is not lost: the next park_until() returns at once. Tokens do not add up.
// What was written before unpark() is seen after the park_until() that it ends.
//
// Threading: park_until() belongs to one thread; unpark() to any. No locks; an
// unpark() whose target is awake costs one atomic exchange and no system call.
#ifndef FOLIOT_FOUNDATION_PLATFORM_PARKER_H_
#define FOLIOT_FOUNDATION_PLATFORM_PARKER_H_

#include <atomic>
#include <cstdint>

#include "foundation/base/time.h"

namespace foliot {

class Parker {
 public:
  Parker() = default;
  Parker(const Parker&) = delete;
  Parker& operator=(const Parker&) = delete;

  // Returns once there is a token or `deadline` has passed; now and then sooner,
  // without a reason, so the caller looks again at what it waits for. The kernel
  // wakes a sleeper tens of microseconds late: the last `spin` before a finite
  // `deadline` is spent spinning, which costs a core and ends on time.
  void park_until(TimePoint deadline, Duration spin = Duration());

  void unpark();

 private:
  // The token lies on a cache line of its own: every poster writes it.
  alignas(64) std::atomic<uint32_t> state_{0};
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_PARKER_H_
