// The parts of a simulation that devices of different kinds serve, each as a simulation of
// its own: what all together are measured against.
#ifndef FOLIOT_VIRTUAL_SIMULATION_KIND_PARTS_H_
#define FOLIOT_VIRTUAL_SIMULATION_KIND_PARTS_H_

#include <vector>

#include "foundation/base/status.h"
#include "load/workload/workload.h"
#include "virtual/simulation/simulation.h"

namespace foliot {

struct KindPart {
  SimulationOptions options;
  Workload workload;
};

// One for each kind of device that some model runs on, in the order of the kinds. With one
// seed, the requests of all parts together are those of the whole.
// Errors: kInvalidArgument naming models that run on several kinds, or a stream that asks
// models of several.
Result<std::vector<KindPart>> split_by_kind(const SimulationOptions& options, const Workload& workload);

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_SIMULATION_KIND_PARTS_H_
