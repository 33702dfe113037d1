// Loops of Foliot's own kernels, spread over the device's threads.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_PARALLEL_H_
#define FOLIOT_ENGINE_DEVICE_CPU_PARALLEL_H_

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "engine/device/cpu/team.h"

namespace foliot {

// Below so many bytes moved or operations done, waking other threads costs more
// than it saves.
inline constexpr int64_t kParallelWork = int64_t{1} << 16;

// Calls body(i) for i in [0, count). `work` is about how much all of it is. A
// team is only formed where it is worth it, and never with one thread.
template <typename Body>
void parallel_for(int64_t count, int64_t work, const Body& body) {
  if (work < kParallelWork || count < 2 || omp_get_max_threads() == 1) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  struct Loop {
    int64_t count;
    const Body& body;
  } loop{count, body};
  const auto run_share = [](void* data) {
    const Loop& all = *static_cast<Loop*>(data);
    const SharePosition position = share_position();
    const int64_t each = all.count / position.shares, more = all.count % position.shares;
    const int64_t first = position.share * each + std::min<int64_t>(position.share, more);
    const int64_t last = first + each + (position.share < more ? 1 : 0);
    for (int64_t i = first; i < last; ++i) all.body(i);
  };
  Team::of_this_thread().run(static_cast<uint32_t>(omp_get_max_threads()), run_share, &loop);
}

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_PARALLEL_H_
