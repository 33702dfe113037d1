// Workload file: the declarative form of workloads, in TOML: [[profiles]], [[models]],
// [[streams]] and how long they are played (docs/SIMULATE.md). A file may hold more:
// its other readers read the rest with the same TomlReader, and finish it.
#ifndef FOLIOT_LOAD_WORKLOAD_WORKLOAD_FILE_H_
#define FOLIOT_LOAD_WORKLOAD_WORKLOAD_FILE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/config/toml_reader.h"
#include "load/workload/profile_table.h"
#include "load/workload/workload.h"

namespace foliot {

// Reads the profile of a compiled package; its name is given.
using PackageProfileReader = std::function<Result<ModelProfile>(const std::string& path)>;

// The V100 table and what [[profiles]] adds to it. Paths are relative to the file.
// Errors: kInvalidArgument naming file, line and key.
Result<ProfileTable> read_profiles(TomlReader& file, const PackageProfileReader& read_package);

// [[models]] and [[streams]]. Models must have one of `profiles`; where that is null,
// as for a load generator, a name will do. Errors: kInvalidArgument naming file, line
// and key; those of traces name the trace's line.
Result<Workload> read_workload(TomlReader& file, const ProfileTable* profiles);

// How a workload is played.
struct WorkloadRun {
  uint64_t seed = 1;
  Duration duration = Duration::seconds(60);  // requests come for so long
  Duration warm_up;                           // at the beginning, not counted
  bool preload = false;                       // the models are asked for once before
};

// The keys seed, duration, warm_up and preload. Errors are kept in `file`.
void read_run(TomlReader& file, WorkloadRun& run);

}  // namespace foliot

#endif  // FOLIOT_LOAD_WORKLOAD_WORKLOAD_FILE_H_
