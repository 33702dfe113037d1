// The experiment files of `foliot simulate` (docs/SIMULATE.md): a workload and the
// cluster that it meets.
#ifndef FOLIOT_APP_COMMANDS_SIMULATION_FILE_H_
#define FOLIOT_APP_COMMANDS_SIMULATION_FILE_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "sim/cluster_simulation.h"
#include "sim/simulation.h"
#include "workload/profile_table.h"
#include "workload/workload.h"

namespace foliot {

struct SimulationFile {
  std::vector<std::string> policies{"foliot"};  // names that exist
  SimulationOptions options;                    // all but the policy
  Workload workload;
  ProfileTable profiles;
  // [cluster] protocol = "links": what `options` does not say. The policy is left out here,
  // too.
  std::optional<ClusterSimulationOptions> links{};
};

// One run over links.
ClusterSimulationOptions links_options(const SimulationFile& file, const std::string& policy, uint64_t seed);

// Errors: kInvalidArgument naming file, line and key.
Result<SimulationFile> read_simulation_file(const std::filesystem::path& file);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_SIMULATION_FILE_H_
