#include "foundation/core/stage_slots.h"

#include "foundation/base/check.h"

namespace foliot {
namespace {

std::vector<uint32_t> visits_most(const PipelineInfo& pipeline) {
  std::vector<uint32_t> most;
  for (const PipelineStage& stage : pipeline.stages) most.push_back(stage.visits_most());
  return most;
}

}  // namespace

StageSlots::StageSlots(std::span<const uint32_t> visits_most) : firsts_{0} {
  for (uint32_t stage = 0; stage < visits_most.size(); ++stage) {
    for (uint32_t element = 0; element < visits_most[stage]; ++element) places_.push_back({stage, element});
    firsts_.push_back(size());
  }
  FOLIOT_CHECK(size() > 0 && size() <= kSlotsMax);
}

StageSlots::StageSlots(const PipelineInfo& pipeline) : StageSlots(visits_most(pipeline)) {}

}  // namespace foliot
