// VisitOrder: what a worker does with a row that is a visit of a pipeline's stage, where the
// stages of a run are visited by several workers (decision 0121): where its inputs come from,
// which conditions it evaluates and what it counts, and where its outputs go.
//
// VisitOutputs: the holders of what stages computed, as the controller sees them.
#ifndef FOLIOT_FOUNDATION_CORE_VISIT_ORDER_H_
#define FOLIOT_FOUNDATION_CORE_VISIT_ORDER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "foundation/core/ids.h"
#include "foundation/core/pipeline_info.h"
#include "foundation/core/stage_condition.h"
#include "foundation/core/tensor_part.h"

namespace foliot {

struct VisitOrder {
  // What of one input comes from one place.
  struct Piece {
    std::optional<uint32_t> slot;  // of the visit whose output it is; none: an input of the call
    DeviceId holder;               // of an output: the device that computed it

    bool operator==(const Piece&) const = default;
  };
  struct Input {
    uint32_t tensor = 0;          // position among the outputs of the visits, or the call's inputs
    TensorPart taken{};           // of this tensor, at its holder
    std::vector<Piece> pieces{};  // one behind the other
    uint32_t pieces_most = 1;     // the input has room for; zeros where there are fewer

    bool operator==(const Input&) const = default;
  };
  std::vector<Input> inputs;               // by the model's inputs
  std::vector<StageCondition> conditions;  // at most kConditionsMax
  std::vector<uint32_t> answers;           // outputs that the client may get; they are sent to it
  bool held = false;                       // later stages may take its outputs: the worker holds them
  std::optional<uint32_t> count{};         // the output that is read as a count
};

class VisitOutputs {
 public:
  virtual ~VisitOutputs() = default;
  // No stage takes the outputs of this visit any more.
  virtual void discard(RequestId visit, DeviceId holder) = 0;
};

// Memory for what workers hold.
struct HeldRoom {
  uint64_t bytes = UINT64_MAX;
  uint64_t payloads = UINT64_MAX;
};

// The outputs of a stage that clients may get, ascending.
std::vector<uint32_t> answers_of(const PipelineInfo& pipeline, uint32_t stage);
// Whether later stages take outputs of the stage.
bool has_consumers(const PipelineInfo& pipeline, uint32_t stage);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_VISIT_ORDER_H_
