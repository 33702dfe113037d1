// Stage visits: the requests that a run of a pipeline becomes (foundation/core/pipeline_info.h). A visit's
// id and payload are those of the run, with the visit's slot in bits that these leave free.
// Slots number the visits that a run can make, a stage's one behind the other
// (foundation/core/stage_slots.h).
#ifndef FOLIOT_FOUNDATION_CORE_STAGE_VISIT_H_
#define FOLIOT_FOUNDATION_CORE_STAGE_VISIT_H_

#include <cstdint>
#include <optional>

#include "foundation/core/ids.h"
#include "foundation/core/pipeline_info.h"

namespace foliot {

// Of ids and payloads of runs, zero: bits 24 to 31.
inline constexpr uint32_t kVisitSlotShift = 24;
inline constexpr uint64_t kVisitSlotBits = uint64_t{0xFF} << kVisitSlotShift;
static_assert(kSlotsMax <= kVisitSlotBits >> kVisitSlotShift);

// RequestId or PayloadHandle. REQUIRES: run.value() & kVisitSlotBits is 0; slot < kSlotsMax.
template <typename AnyId>
constexpr AnyId visit_of(AnyId run, uint32_t slot) {
  return AnyId(run.value() | uint64_t{slot + 1} << kVisitSlotShift);
}
template <typename AnyId>
constexpr AnyId run_of(AnyId visit) {
  return AnyId(visit.value() & ~kVisitSlotBits);
}
// The n-th number with room for slots.
constexpr uint64_t nth_run(uint64_t n) {
  const uint64_t low = n & ((uint64_t{1} << kVisitSlotShift) - 1);
  return low | n >> kVisitSlotShift << 32;
}
// nullopt: it is that of a run, or of a request for a model.
template <typename AnyId>
constexpr std::optional<uint32_t> visit_slot(AnyId visit) {
  const auto bits = static_cast<uint32_t>((visit.value() & kVisitSlotBits) >> kVisitSlotShift);
  if (bits == 0) return std::nullopt;
  return bits - 1;
}

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_STAGE_VISIT_H_
