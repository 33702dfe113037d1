// LoggedWorkload: what the log of a server holds for a simulator: the requests of each model and the
// runs of each pipeline as streams that are replayed, and the durations that were measured.
//
// What it takes from the log: arrivals, classes (offline requests become best effort), the
// median SLO of a stream, medians of LOAD and, of a device at its usual speed, of EXEC by batch size,
// how EXECs spread around these and when, lanes, pages, and what each run of a pipeline visited; of runs that were not
// answered, the shares of the others. It knows nothing of the sizes of inputs and outputs: copies take what the
// simulator's noise says.
#ifndef FOLIOT_PLANNING_PIPELINES_LOGGED_WORKLOAD_H_
#define FOLIOT_PLANNING_PIPELINES_LOGGED_WORKLOAD_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "answer/pipelines/pipeline_spec.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "load/workload/profile_table.h"
#include "load/workload/seen_exec.h"
#include "load/workload/workload.h"
#include "observe/request_log/log.h"

namespace foliot {

struct LoggedWorkload {
  Workload workload;      // each model is a group, named and profiled by its name
  ProfileTable profiles;  // and those of the V100
  // By models: EXECs as multiples of the median of their batch size, from the first arrival on.
  std::map<std::string, std::vector<SeenExec>> seen_execs{};
  Duration length;  // from the first arrival until after the last
  // Of a device, as far as EXECs show, and the share of an EXEC that they divide among themselves (Amdahl's law): the
  // median of the models that ran on all of them and on one, kParallelShare where none did. Profiles are of all lanes.
  static constexpr double kParallelShare = 0.9;
  uint32_t lanes = 1;
  double parallel_share = kParallelShare;
};

// `pipelines`: of all pipelines that the log has runs of. `page_bytes`: of a page of the server.
// `name` is what errors call the log. Errors: kInvalidArgument: a log without requests, a model
// of which no batch has run, a pipeline that is not given or whose stages cannot be simulated;
// those of read_logged_pipeline().
Result<LoggedWorkload> read_logged_workload(const Log& log, std::span<const PipelineSpec> pipelines,
                                            uint64_t page_bytes, const std::string& name);

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_LOGGED_WORKLOAD_H_
