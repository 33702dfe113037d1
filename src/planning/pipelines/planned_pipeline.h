// PlannedPipeline: a pipeline as a planner considers it: stages in topological order, what each
// waits for, how probable its visit is, and what it costs and takes on each kind of device
// (InferLine, section 4.4).
//
// A query waits for all parents of a stage, each visited or skipped. Then it visits the stage
// if of each of its needs one was visited, and a condition holds with the stage's probability;
// else it skips the stage in no time. A stage that is visited for each element it visits several
// times at once, or not at all, and is done with the last.
#ifndef FOLIOT_PLANNING_PIPELINES_PLANNED_PIPELINE_H_
#define FOLIOT_PLANNING_PIPELINES_PLANNED_PIPELINE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "answer/pipelines/pipeline_spec.h"
#include "foundation/base/random.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/config/price_file.h"
#include "foundation/core/pipeline_info.h"
#include "planning/pipelines/profile_file.h"

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
  double scale_factor = 1;                   // visits of a query, on average
  std::vector<StageKind> kinds;              // at least one
  // Of a stage that is visited for each element: that which counts them, and how probable 0, 1, 2, ...
  // visits are beside each other, once it is visited.
  std::optional<uint32_t> counted_by{};
  std::vector<double> visits_shares{};

  bool reached_by(VisitSet visits) const;
  // `mean` visits: the whole numbers next to it.
  void set_mean_visits(double mean);
  // At a number from [0, 1). REQUIRES: visits_shares.
  uint8_t visits_at(double rank) const;
};

// The stages that another one waits for: PlannedStage::parents, needs and counted_by.
struct StageEdges {
  std::vector<uint32_t> parents;
  std::vector<std::vector<uint32_t>> needs;
  std::optional<uint32_t> counted_by{};

  bool operator==(const StageEdges&) const = default;
};
// Of a stage that is served.
StageEdges edges_of(const PipelineStage& stage);

struct PlannedPipeline {
  std::string name;
  std::vector<PlannedStage> stages;  // 1 to kStagesMax
  // Of kinds of which there are only so many; of others there are enough.
  std::map<std::string, uint32_t, std::less<>> devices{};

  // No stage is ever skipped.
  bool unconditional() const;
  // The stages that a query visits.
  VisitSet draw_visits(Random& random) const;
  // By stage: how often, where it is visited for each element; 1 elsewhere. Stages for which one stage
  // counts draw alike.
  std::vector<uint8_t> draw_elements(Random& random) const;
  // Some stage is visited for each element.
  bool has_elements() const;
  // Sets `scale_factor` of each stage from the probabilities.
  void set_scale_factors();
  // The reverse. A share above that of the queries that reach the stage counts as that.
  void set_probabilities();
};

struct PlanningInputs {
  StageProfiles profiles;
  KindPrices prices;
  KindLimits devices{};       // that there are, of some kinds
  std::string profiles_file;  // for messages
  std::string prices_file;
  double quantile = 0.99;  // of durations that depend on the inputs
  // Of queries that were observed: what follows of visits that depend on each other. Empty:
  // conditions hold independently.
  std::vector<VisitSet> visits{};
};

// Stages with conditions whose profile does not say how often they are visited, so that they are planned for
// every query.
std::vector<std::string> stages_without_visits(const PipelineSpec& spec, const StageProfiles& profiles);

// Kinds of which there are no devices are left out. Errors: kInvalidArgument naming the file: a stage
// without a profile or whose kinds have no devices, a kind without a price, a share of queries that exceeds that of the
// stages it needs.
Result<PlannedPipeline> plan_stages(const PipelineSpec& spec, const PlanningInputs& inputs);

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_PLANNED_PIPELINE_H_
