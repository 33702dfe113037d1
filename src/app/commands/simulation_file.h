// The experiment files of `foliot simulate` (docs/SIMULATE.md): a workload and the
// cluster that it meets.
#ifndef FOLIOT_APP_COMMANDS_SIMULATION_FILE_H_
#define FOLIOT_APP_COMMANDS_SIMULATION_FILE_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "load/workload/profile_table.h"
#include "load/workload/workload.h"
#include "virtual/cluster/cluster_simulation.h"
#include "virtual/simulation/simulation.h"

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

// A server's log, whose requests are played in place of a file's (planning/pipelines/logged_workload.h).
struct SimulatedLog {
  std::filesystem::path folder;                  // empty: none
  std::vector<std::filesystem::path> pipelines;  // the pipeline.toml of each that has runs in it
};

// Errors: kInvalidArgument naming file, line and key. With a log, the file has no models, streams,
// pipelines and profiles, and may be empty: the defaults.
Result<SimulationFile> read_simulation_file(const std::filesystem::path& file, const SimulatedLog& log);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_SIMULATION_FILE_H_
