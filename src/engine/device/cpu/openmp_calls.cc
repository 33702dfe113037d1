// What oneDNN calls of OpenMP's runtime, on top of Team. The program's own definitions come before those of the library
// that oneDNN is linked with (libgomp), which is left without work. Foliot's own loops only need the number of threads.
#include <dlfcn.h>
#include <omp.h>
#include <sched.h>

#include <algorithm>

#include "engine/device/cpu/team.h"

namespace {

// As last set on the calling thread, else the cores that it may run on.
int& threads_max() {
  thread_local int threads = [] {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    return ::sched_getaffinity(0, sizeof(cores), &cores) == 0 ? std::max(CPU_COUNT(&cores), 1) : 1;
  }();
  return threads;
}

}  // namespace

extern "C" {

void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned /*flags*/) {
  foliot::Team::of_this_thread().run(threads == 0 ? static_cast<unsigned>(threads_max()) : threads, body, data);
}

void GOMP_barrier() {
  const foliot::SharePosition position = foliot::share_position();
  if (position.shares > 1) position.team->meet();
}

int omp_get_thread_num() { return static_cast<int>(foliot::share_position().share); }
int omp_get_num_threads() { return static_cast<int>(foliot::share_position().shares); }
int omp_in_parallel() { return foliot::share_position().shares > 1 ? 1 : 0; }
int omp_get_max_threads() { return threads_max(); }
void omp_set_num_threads(int threads) { threads_max() = std::max(threads, 1); }

}  // extern "C"

namespace foliot {

bool teams_serve_openmp() { return ::dlsym(RTLD_DEFAULT, "GOMP_parallel") == reinterpret_cast<void*>(GOMP_parallel); }

}  // namespace foliot
