// WorkerPool: machines that can be had and given back, by kind: the port of the worker
// autoscaler. A pool says how many there are to be; which one leaves is its own choice. It
// replaces workers that end without being asked to.
//
// Real ones are control/fleet/pools: child processes of `foliot worker`, and the scale subresource of
// Kubernetes, which takes the last of a StatefulSet away first. Each ends a worker by a signal
// at which it finishes what it was given.
#ifndef FOLIOT_CONTROL_FLEET_SCALERS_WORKER_POOL_H_
#define FOLIOT_CONTROL_FLEET_SCALERS_WORKER_POOL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "foundation/base/status.h"

namespace foliot {

// Threading: one thread.
class WorkerPool {
 public:
  virtual ~WorkerPool() = default;
  // How many workers of this kind there are to be. Errors: kNotFound for a kind that the
  // pool does not have; kUnavailable: not known now.
  virtual Result<uint32_t> size(std::string_view kind) = 0;
  // From now on there are to be so many of this kind; those that are missing start. Does
  // not wait for them. Errors: as size(); nothing has changed, and it is asked again.
  virtual Status set_size(std::string_view kind, uint32_t workers) = 0;
  // The name of the worker that leaves if the size is set to one less; none: not known now.
  virtual std::optional<std::string> next_to_leave(std::string_view kind) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_FLEET_SCALERS_WORKER_POOL_H_
