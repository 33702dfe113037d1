// LoadSource: the requests that a LoadGenerator sends, and their times.
//
// Threading: not thread-safe; the generator calls it under a lock.
#ifndef FOLIOT_LOAD_CLIENT_LOAD_SOURCE_H_
#define FOLIOT_LOAD_CLIENT_LOAD_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "foundation/base/time.h"
#include "load/workload/popularity.h"
#include "load/workload/workload_arrivals.h"

namespace foliot {

class LoadSource {
 public:
  virtual ~LoadSource() = default;
  // The next request that comes by itself, in the order of time; nullopt when none
  // follows.
  virtual std::optional<Arrival> next() = 0;
  // The request that comes because `over` was answered at `now`, if one does.
  virtual std::optional<Arrival> follow(const Arrival& over, Duration now) = 0;
};

// A workload, with the arrivals that a simulation of it has.
std::unique_ptr<LoadSource> make_workload_source(WorkloadArrivals arrivals);

// A closed loop: `count` users, each of which asks for a model drawn anew as soon as it
// has been answered. It shows capacity: no user pauses in between.
std::unique_ptr<LoadSource> make_users(uint32_t count, Popularity popularity, Duration slo, uint64_t seed);

}  // namespace foliot

#endif  // FOLIOT_LOAD_CLIENT_LOAD_SOURCE_H_
