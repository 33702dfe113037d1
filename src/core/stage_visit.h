// Stage visits: the requests that a run of a pipeline becomes, one for each stage that it
// visits (core/pipeline_info.h). A visit's id and payload are those of the run, with the
// stage in bits that these leave free.
#ifndef FOLIOT_CORE_STAGE_VISIT_H_
#define FOLIOT_CORE_STAGE_VISIT_H_

#include <cstdint>
#include <optional>

#include "core/ids.h"
#include "core/pipeline_info.h"

namespace foliot {

// Of ids and payloads of runs, zero: bits 24 to 31.
inline constexpr uint32_t kStageShift = 24;
inline constexpr uint64_t kStageBits = uint64_t{0xFF} << kStageShift;
static_assert(kStagesMax < kStageBits >> kStageShift);

// RequestId or PayloadHandle. REQUIRES: run.value() & kStageBits is 0.
template <typename AnyId>
constexpr AnyId visit_of(AnyId run, uint32_t stage) {
  return AnyId(run.value() | uint64_t{stage + 1} << kStageShift);
}
template <typename AnyId>
constexpr AnyId run_of(AnyId visit) {
  return AnyId(visit.value() & ~kStageBits);
}
// nullopt: it is that of a run, or of a request for a model.
template <typename AnyId>
constexpr std::optional<uint32_t> stage_of(AnyId visit) {
  const auto bits = static_cast<uint32_t>((visit.value() & kStageBits) >> kStageShift);
  if (bits == 0) return std::nullopt;
  return bits - 1;
}

}  // namespace foliot

#endif  // FOLIOT_CORE_STAGE_VISIT_H_
