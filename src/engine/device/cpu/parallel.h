// Loops of Foliot's own kernels, spread over the device's threads.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_PARALLEL_H_
#define FOLIOT_ENGINE_DEVICE_CPU_PARALLEL_H_

#include <omp.h>

#include <cstdint>

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
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; ++i) body(i);
}

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_PARALLEL_H_
