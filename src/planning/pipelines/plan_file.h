// The plan file: a plan as `foliot plan --save` writes it, by which a server tunes the pipeline
// (planning/pipelines/tuning_plan.h):
//
//   pipeline = "animals"
//   content = "5f0c..."          # of the pipeline.toml that it was made for
//   slo = "150ms"                # from arrival to answer, of this share of the queries
//   attainment = 0.99
//   rate = 140.05                # queries per second of the trace
//
//   [[stage]]                    # each, in the order of the pipeline
//   name = "fine"
//   model = "resnet"
//   kind = "cpu"
//   batch = 2
//   replicas = 3
//   visited = 0.3                # share of the queries
//   throughput = 111.1           # rows per second of one replica
//   price = 0.05                 # dollars per hour of one replica
//   batch_sizes = [1, 2]
//   durations = ["9ms", "16ms"]
//
//   [[window]]                   # of the traffic envelope, ascending
//   length = "29ms"
//   queries = 19                 # the most that came within it
//
// Without slo, price, batch_sizes and durations it serves all tuners but `replan`. A folder of plans has one for each
// pipeline: NAME/plan.toml.
#ifndef FOLIOT_PLANNING_PIPELINES_PLAN_FILE_H_
#define FOLIOT_PLANNING_PIPELINES_PLAN_FILE_H_

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "foundation/base/status.h"
#include "planning/pipelines/tuning_plan.h"

namespace foliot {

inline constexpr std::string_view kPlanFile = "plan.toml";

struct SavedPlan {
  std::string file;  // for messages
  Status status;     // not ok: why there is no plan
  TuningPlan plan;
};

// `pipeline`: whose plan it is to be. Errors: kInvalidArgument naming file, line and what is wrong, as its status.
SavedPlan read_plan_file(const std::string& pipeline, const std::filesystem::path& file);

// What is in a folder, by the names of pipelines; broken ones with their status. Errors: kInvalidArgument naming
// the folder that cannot be read.
Result<std::map<std::string, SavedPlan>> scan_plans(const std::filesystem::path& folder);

// Such a file, which is read as the same plan.
std::string plan_file_text(const TuningPlan& plan);

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_PLAN_FILE_H_
