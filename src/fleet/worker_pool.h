// WorkerPool: machines that can be had and given back, by kind: the port of the worker
// autoscaler. A pool says how many there are to be; which one leaves is its own choice, so
// that it is asked before that one is drained.
//
// Meant to be implemented by child processes of `foliot worker`, and by the scale subresource
// of Kubernetes, which takes the last of a StatefulSet away first.
#ifndef FOLIOT_FLEET_WORKER_POOL_H_
#define FOLIOT_FLEET_WORKER_POOL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace foliot {

class WorkerPool {
 public:
  virtual ~WorkerPool() = default;
  // From now on there are to be so many of this kind; those that are missing start. Does
  // not wait for them. Errors: kNotFound for a kind that the pool does not have;
  // kUnavailable, kResourceExhausted: not now; nothing has changed, and it is asked again.
  virtual Status set_size(std::string_view kind, uint32_t workers) = 0;
  // The name of the worker that leaves if the size is set to one less.
  virtual std::optional<std::string> next_to_leave(std::string_view kind) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_FLEET_WORKER_POOL_H_
