// PipelineInfo: a pipeline (InferLine, section 4.1) as it is run: stages, each with the
// model that computes it, the sources of its inputs, and the conditions of its visit.
//
// A call's row is a *run*. A run *visits* a stage with one Request for the stage's model.
// A stage is visited once each of its inputs has a source that was visited, and if all
// conditions that it requires hold; else it is skipped, once that is certain. A run is over
// when each stage is visited or skipped, or one is refused.
#ifndef FOLIOT_CORE_PIPELINE_INFO_H_
#define FOLIOT_CORE_PIPELINE_INFO_H_

#include <bitset>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/model_info.h"

namespace foliot {

inline constexpr uint32_t kStagesMax = 32;
inline constexpr uint32_t kConditionsMax = 8;  // of the outputs of one stage

// Stages of one pipeline, by their positions.
using StageSet = std::bitset<kStagesMax>;
// Of one row of a stage's outputs: bit i is condition i of the stage.
using ConditionSet = uint8_t;
static_assert(std::numeric_limits<ConditionSet>::digits == kConditionsMax);

// A comparison with a number that is taken from one row of one output. Not a number: false,
// but for kNotEqual.
struct StageCondition {
  enum class Value : uint8_t {
    kMaximum,  // of all elements
    kElement,  // the one at `element`
    kArgmax,   // the position of the first maximum
  };
  enum class Comparison : uint8_t { kBelow, kAtMost, kAbove, kAtLeast, kEqual, kNotEqual };

  uint32_t output = 0;  // position in the outputs of the stage's model
  Value value = Value::kMaximum;
  uint64_t element = 0;  // row-major
  Comparison comparison = Comparison::kBelow;
  double limit = 0;
};

// Where a tensor of a run comes from: an output of a stage, or an input of the call.
struct TensorSource {
  std::optional<uint32_t> stage;  // none: the call's
  uint32_t tensor = 0;            // position in the outputs of the stage's model, or in the call's inputs

  bool operator==(const TensorSource&) const = default;
};

struct PipelineStage {
  // A condition of another stage that has to hold.
  struct Requirement {
    uint32_t stage = 0;
    uint32_t condition = 0;
  };

  std::string name;
  std::shared_ptr<const ModelInfo> model;
  BucketId bucket;
  // By the model's inputs: the first that was visited is taken. Earlier stages only.
  std::vector<std::vector<TensorSource>> inputs;
  // Of its own outputs; at most kConditionsMax.
  std::vector<StageCondition> conditions;
  // Of earlier stages; all have to hold.
  std::vector<Requirement> requires_all;
};

struct PipelineInfo {
  struct Output {
    std::vector<TensorSource> sources;  // the first that was visited is taken
    double fill = 0;                    // each element, where none was visited
  };

  PipelineId id;
  std::string name;
  // 1 to kStagesMax; each after those that it depends on.
  std::vector<PipelineStage> stages;
  std::vector<Output> outputs;  // by ModelInfo::outputs of what clients call
};

}  // namespace foliot

#endif  // FOLIOT_CORE_PIPELINE_INFO_H_
