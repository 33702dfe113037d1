// The seed profile of a container: how long its batches take, measured before it is offered.
//
// Durations of user code vary (garbage collection, allocators, caches), so that a
// quantile over many calls is taken, and not the fastest one.
#ifndef FOLIOT_ENGINE_CONTAINER_CONTAINER_PROFILE_H_
#define FOLIOT_ENGINE_CONTAINER_CONTAINER_PROFILE_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/container/container_process.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct ContainerProfileOptions {
  uint32_t warm_up_calls = 3;              // of each batch size, not measured: first calls compile and allocate
  uint32_t calls = 20;                     // measured of each batch size, within `budget`
  uint32_t calls_min = 3;                  // beyond `budget`, too
  Duration budget = Duration::seconds(2);  // of one batch size
  double quantile = 0.9;
  Duration call_timeout = Duration::seconds(60);  // a first call may compile
  std::function<bool()> cancelled{};              // asked before each call
};

// 1, 2, 4 ... and the description's batch_size_max.
std::vector<uint32_t> container_batch_sizes(const ContainerDescription& description);

// The durations of calls with these batch sizes, in their order; never less for a larger batch. Inputs are
// zeros and empty strings, of the largest extents. On the supervising thread; REQUIRES: the process shares memory for
// one batch of each. Errors: those of ContainerProcess::call(), with the batch size; kUnavailable: cancelled.
Result<std::vector<Duration>> profile(ContainerProcess& process, std::span<const uint32_t> batch_sizes,
                                      const ContainerProfileOptions& options = {});

}  // namespace foliot

#endif  // FOLIOT_ENGINE_CONTAINER_CONTAINER_PROFILE_H_
