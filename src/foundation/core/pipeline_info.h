// PipelineInfo: a pipeline (InferLine, section 4.1) as it is run: stages, each with the
// model that computes it, the sources of its inputs, and the conditions of its visit.
//
// A call's row is a *run*. A run *visits* a stage with one Request for the stage's model.
// A stage is visited once each of its inputs has a source that was visited, and if all
// conditions that it requires hold; else it is skipped, once that is certain. A run is over
// when each stage is visited or skipped, or one is refused.
//
// A stage may be visited for each element of what an earlier stage made, which counts them
// (decision 0216): with so many Requests, or none. It is over when all of them are.
#ifndef FOLIOT_FOUNDATION_CORE_PIPELINE_INFO_H_
#define FOLIOT_FOUNDATION_CORE_PIPELINE_INFO_H_

#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "foundation/core/ids.h"
#include "foundation/core/model_info.h"
#include "foundation/core/stage_condition.h"
#include "foundation/core/stage_count.h"

namespace foliot {

inline constexpr uint32_t kStagesMax = 32;

// Stages of one pipeline, by their positions.
using StageSet = std::bitset<kStagesMax>;

// Visits that one run can make, of all stages together.
inline constexpr uint32_t kSlotsMax = 255;
// Visits of one pipeline, by their slots (foundation/core/stage_slots.h).
using SlotSet = std::bitset<kSlotsMax>;

// Where a tensor of a run comes from: an output of a stage, or an input of the call.
struct TensorSource {
  std::optional<uint32_t> stage;  // none: the call's
  uint32_t tensor = 0;            // position in the outputs of the stage's model, or in the call's inputs
  // Of a stage that is visited for each element: the visit's own part of the tensor, whose first
  // dimension has as many as the stage may have visits.
  bool each = false;

  bool operator==(const TensorSource&) const = default;
};

struct PipelineStage {
  // A condition of another stage that has to hold.
  struct Requirement {
    uint32_t stage = 0;
    uint32_t condition = 0;
  };
  // Its number of visits in a run.
  struct ForEach {
    uint32_t stage = 0;  // an earlier one, which counts
    uint32_t at_most = 1;
  };

  std::string name;
  std::shared_ptr<const ModelInfo> model;
  std::optional<BucketId> bucket;  // none: that of the run
  // By the model's inputs: the first that was visited is taken. Earlier stages only.
  std::vector<std::vector<TensorSource>> inputs;
  // Of its own outputs; at most kConditionsMax.
  std::vector<StageCondition> conditions;
  // Of earlier stages; all have to hold.
  std::vector<Requirement> requires_all;
  // Of its own outputs, if others are visited for each element; it is visited once.
  std::optional<StageCount> count{};
  // Outside of the stage its outputs have `at_most` as a further first dimension; zeros follow the
  // last element. It has no conditions and no count of its own.
  std::optional<ForEach> for_each{};

  uint32_t visits_most() const { return for_each ? for_each->at_most : 1; }
};

struct PipelineInfo {
  struct Output {
    std::vector<TensorSource> sources;  // the first that was visited is taken
    double fill = 0;                    // each element, where none was visited, and behind the last visit's
  };

  PipelineId id;
  std::string name;
  std::string content{};  // a hash of what its file says; empty: unknown
  // 1 to kStagesMax; each after those that it depends on.
  std::vector<PipelineStage> stages;
  std::vector<Output> outputs;  // by ModelInfo::outputs of what clients call
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_PIPELINE_INFO_H_
