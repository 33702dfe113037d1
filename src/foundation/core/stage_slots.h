// StageSlots: the slots of a pipeline's visits (foundation/core/stage_visit.h): of each stage in turn as
// many as it may have visits in a run. Where none has more than one, they are the stages'
// positions.
//
// Threading: immutable once made.
#ifndef FOLIOT_FOUNDATION_CORE_STAGE_SLOTS_H_
#define FOLIOT_FOUNDATION_CORE_STAGE_SLOTS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "foundation/core/pipeline_info.h"

namespace foliot {

class StageSlots {
 public:
  struct Place {
    uint32_t stage = 0;
    uint32_t element = 0;  // of the stage's visits
  };

  // Of no stages.
  StageSlots() = default;
  // `visits_most`: by stage. REQUIRES: 1 to kSlotsMax together.
  explicit StageSlots(std::span<const uint32_t> visits_most);
  explicit StageSlots(const PipelineInfo& pipeline);

  // Of all stages.
  uint32_t size() const { return static_cast<uint32_t>(places_.size()); }
  uint32_t first(uint32_t stage) const { return firsts_[stage]; }
  uint32_t count(uint32_t stage) const { return firsts_[stage + 1] - firsts_[stage]; }
  // REQUIRES: slot < size().
  const Place& at(uint32_t slot) const { return places_[slot]; }
  // nullopt: there is no such slot.
  std::optional<Place> find(uint32_t slot) const { return slot < size() ? std::optional(places_[slot]) : std::nullopt; }

 private:
  std::vector<uint32_t> firsts_;  // by stage, and the end
  std::vector<Place> places_;     // by slot
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_STAGE_SLOTS_H_
