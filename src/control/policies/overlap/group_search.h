// GroupSearch: how much of which queries makes up the next operator group (Abacus, section
// 6.3): of the queries in the order of their headrooms as many as fit whole, and of the
// first that does not fit whole as many operators as fit, within the headroom of the first.
//
// Each round asks the DurationModel once, of several groups: one round for whole queries,
// and ceil(log_4 n) for the n operators of the one that is cut.
#ifndef FOLIOT_CONTROL_POLICIES_OVERLAP_GROUP_SEARCH_H_
#define FOLIOT_CONTROL_POLICIES_OVERLAP_GROUP_SEARCH_H_

#include <array>
#include <cstdint>
#include <span>

#include "control/controller/duration_model.h"
#include "foundation/base/time.h"

namespace foliot::overlap {

inline constexpr uint32_t kGroupMax = 4;    // queries, each of another model
inline constexpr uint32_t kSearchWays = 4;  // parts into which a round divides what is left

// A query, begun or not.
struct Candidate {
  ExecShape shape;
  const Runnable* runnable = nullptr;
  Duration whole;      // its EXEC alone, on all lanes
  uint32_t first = 0;  // operator; those before are over

  uint32_t operators() const { return runnable->operator_count(); }
  // From `first` on to before operator `last`.
  ExecSegment segment(uint32_t last) const {
    const OperatorRange range{first, last >= operators() ? OperatorRange::kEnd : last};
    return {shape, range, operators(), whole, whole.scaled(runnable->share(range))};
  }
  ExecSegment rest() const { return segment(operators()); }
};

struct Group {
  std::array<ExecSegment, kGroupMax> segments;  // of the first candidates, in their order
  uint32_t size = 0;
  Duration duration;  // expected, from when they begin until all have ended
};

// The first candidate is in the group with all its operators, whatever `limit`. REQUIRES: 1
// to kGroupMax candidates.
Group search_group(std::span<const Candidate> candidates, Duration limit, const DurationModel& durations);

// How many times as long the two take one after the other as together.
double gain(const Candidate& one, const Candidate& other, const DurationModel& durations);

}  // namespace foliot::overlap

#endif  // FOLIOT_CONTROL_POLICIES_OVERLAP_GROUP_SEARCH_H_
