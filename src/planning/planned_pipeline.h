// PlannedPipeline: a pipeline as a planner considers it: stages in topological order, what each
// waits for, how probable its visit is, and what it costs and takes on each kind of device
// (InferLine, section 4.4).
//
// A query waits for all parents of a stage, each visited or skipped. Then it visits the stage
// if of each of its needs one was visited, and a condition holds with the stage's probability;
// else it skips the stage in no time.
#ifndef FOLIOT_PLANNING_PLANNED_PIPELINE_H_
#define FOLIOT_PLANNING_PLANNED_PIPELINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "base/time.h"
#include "config/price_file.h"
#include "core/pipeline_info.h"
#include "pipeline/pipeline_spec.h"
#include "planning/profile_file.h"

namespace foliot {

using VisitSet = uint32_t;  // bit i: stage i
static_assert(kStagesMax <= 32);

// What a stage takes and costs on one kind of device.
struct StageKind {
  std::string kind;
  double price = 0;                   // dollars per hour of a replica
  std::vector<uint32_t> batch_sizes;  // ascending, from 1
  std::vector<int64_t> durations_ns;  // by rows, from 1 on; [0] is not used

  uint32_t batch_most() const { return batch_sizes.back(); }
  // Queries per second of one replica in full batches.
  double throughput(uint32_t batch) const { return batch * 1e9 / static_cast<double>(durations_ns[batch]); }
};

struct PlannedStage {
  std::string name;
  std::vector<uint32_t> parents;             // earlier stages, ascending
  std::vector<std::vector<uint32_t>> needs;  // earlier stages
  double probability = 1;                    // of a visit once all needs are met
  double scale_factor = 1;                   // share of the queries that visit it
  std::vector<StageKind> kinds;              // at least one

  bool reached_by(VisitSet visits) const;
};

// The stages that another one waits for: PlannedStage::parents and needs.
struct StageEdges {
  std::vector<uint32_t> parents;
  std::vector<std::vector<uint32_t>> needs;

  bool operator==(const StageEdges&) const = default;
};
// Of a stage that is served.
StageEdges edges_of(const PipelineStage& stage);

struct PlannedPipeline {
  std::string name;
  std::vector<PlannedStage> stages;  // 1 to kStagesMax

  // No stage is ever skipped.
  bool unconditional() const;
  // The stages that a query visits.
  VisitSet draw_visits(Random& random) const;
  // Sets `scale_factor` of each stage from the probabilities.
  void set_scale_factors();
  // The reverse. A share above that of the queries that reach the stage counts as that.
  void set_probabilities();
};

struct PlanningInputs {
  StageProfiles profiles;
  KindPrices prices;
  std::string profiles_file;  // for messages
  std::string prices_file;
  double quantile = 0.99;  // of durations that depend on the inputs
  // Of queries that were observed: what follows of visits that depend on each other. Empty:
  // conditions hold independently.
  std::vector<VisitSet> visits{};
};

// Errors: kInvalidArgument naming the file: a stage without a profile, a kind without a price, a
// share of queries that exceeds that of the stages it needs.
Result<PlannedPipeline> plan_stages(const PipelineSpec& spec, const PlanningInputs& inputs);

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PLANNED_PIPELINE_H_
