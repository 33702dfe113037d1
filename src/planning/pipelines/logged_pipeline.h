// LoggedPipeline: what the log of a server that serves a pipeline holds for a planner: when its runs
// came, which stages each visited, and how long a batch of each stage took. It takes the place
// of a trace and, as far as it goes, of profiles.
//
// A batch counts for a stage if it carried a visit of the stage, and lasts from its INPUT to the
// end of its OUTPUT, without what it waited for.
#ifndef FOLIOT_PLANNING_PIPELINES_LOGGED_PIPELINE_H_
#define FOLIOT_PLANNING_PIPELINES_LOGGED_PIPELINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "answer/pipelines/pipeline_spec.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "observe/request_log/log.h"
#include "planning/pipelines/profile_file.h"
#include "planning/pipelines/query_trace.h"

namespace foliot {

struct LoggedPipeline {
  std::vector<Duration> arrivals;  // of all runs, since the first; ascending
  // By arrivals. nullopt: the run was refused, and what it would have visited is not known.
  std::vector<std::optional<VisitSet>> visits;
  // By stages and arrivals: visits of a stage with for_each; none counts as visited for each of no elements.
  // Empty: of other stages.
  std::vector<std::vector<uint8_t>> elements;
  // Of all stages; without kinds where no size had kLoggedBatchesMin batches. Visits are those of the runs that were
  // answered.
  StageProfiles profiles;

  // The visits of the runs that were answered.
  std::vector<VisitSet> known_visits() const;
  // All runs; what is not known of one is drawn.
  QueryTrace trace(const PlannedPipeline& pipeline, uint64_t seed) const;
};

// Batch sizes with fewer batches in the log have no profile: their P99 would be chance.
inline constexpr size_t kLoggedBatchesMin = 10;

// `name` is what errors call the log. Errors: kInvalidArgument: the log has no run of the
// pipeline, none that was answered, or runs of other stages than `spec` has.
Result<LoggedPipeline> read_logged_pipeline(const PipelineSpec& spec, const Log& log, const std::string& name);

// Adds to each stage of `to` the kinds, and to these the batch sizes, that only `from` has, and
// the stages. Of what both have, `to` holds, and a larger batch takes no less time than a
// smaller one.
void add_missing_profiles(const StageProfiles& from, StageProfiles& to);

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_LOGGED_PIPELINE_H_
