// Runs of `foliot simulate` over links: the cluster's protocols under faults, one seed after
// another (virtual/cluster/cluster_simulation.h).
#ifndef FOLIOT_APP_COMMANDS_SIMULATE_LINKS_H_
#define FOLIOT_APP_COMMANDS_SIMULATE_LINKS_H_

#include <cstdint>

#include "app/commands/simulation_file.h"
#include "foundation/base/status.h"

namespace foliot {

// Prints what came of each policy. Errors: the first promise that was broken, with its seed;
// those of simulate_cluster(). A failed FOLIOT_CHECK ends the program, and names the seed.
// REQUIRES: file.links.
Status simulate_links(const SimulationFile& file, uint64_t seeds);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_SIMULATE_LINKS_H_
