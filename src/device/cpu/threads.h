// OpenMP's number of threads, which each calling thread keeps for itself.
#ifndef FOLIOT_DEVICE_CPU_THREADS_H_
#define FOLIOT_DEVICE_CPU_THREADS_H_

#include <omp.h>

#include <cstdint>

namespace foliot {

// oneDNN's kernels depend on it where they are made, and must run with the same.
inline void use_threads(uint32_t threads) {
  if (omp_get_max_threads() != static_cast<int>(threads)) omp_set_num_threads(static_cast<int>(threads));
}

}  // namespace foliot

#endif  // FOLIOT_DEVICE_CPU_THREADS_H_
