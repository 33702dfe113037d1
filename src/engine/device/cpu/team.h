// Teams: the threads with which a thread of EXEC computes (OpenMP), each on a core of its own.
//
// A team of threads that may move among its cores is at times all on one core, where those
// that spin for the others keep them from running, until the kernel moves one: milliseconds.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_TEAM_H_
#define FOLIOT_ENGINE_DEVICE_CPU_TEAM_H_

#include <cstdint>
#include <span>

namespace foliot {

// Forms the calling thread's team, of as many threads as these cores, and pins each to one of
// them, the calling thread to the first. Kernels that the thread runs with so many threads
// from then on run there. What the kernel does not allow is left as it was.
void form_team(std::span<const uint32_t> cores);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_TEAM_H_
