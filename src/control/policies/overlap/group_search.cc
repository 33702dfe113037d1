#include "control/policies/overlap/group_search.h"

#include "foundation/base/check.h"

namespace foliot::overlap {
namespace {

// As many operators of the candidate as fit beside the group; it does not fit whole.
void add_part(Group& group, const Candidate& candidate, Duration limit, const DurationModel& durations) {
  constexpr uint32_t kProbes = kSearchWays - 1;
  uint32_t fits = candidate.first;
  uint32_t too_long = candidate.operators();
  std::array<std::array<ExecSegment, kGroupMax>, kProbes> groups;
  std::array<std::span<const ExecSegment>, kProbes> asked;
  std::array<Duration, kProbes> expected;
  while (too_long - fits > 1) {
    const uint32_t step = std::max((too_long - fits + kSearchWays - 1) / kSearchWays, 1u);
    uint32_t probes = 0;
    for (uint32_t last = fits + step; probes < kProbes && last < too_long; last += step, ++probes) {
      groups[probes] = group.segments;
      groups[probes][group.size] = candidate.segment(last);
      asked[probes] = std::span(groups[probes].data(), group.size + 1);
    }
    durations.together(std::span(asked.data(), probes), expected);
    uint32_t fitting = 0;
    while (fitting < probes && expected[fitting] <= limit) ++fitting;
    if (fitting < probes) too_long = fits + (fitting + 1) * step;
    if (fitting == 0) continue;
    fits += fitting * step;
    group.segments[group.size] = candidate.segment(fits);
    group.duration = expected[fitting - 1];
  }
  if (fits > candidate.first) ++group.size;
}

}  // namespace

Group search_group(std::span<const Candidate> candidates, Duration limit, const DurationModel& durations) {
  FOLIOT_CHECK(!candidates.empty() && candidates.size() <= kGroupMax);
  Group group;
  std::array<std::span<const ExecSegment>, kGroupMax> asked;
  std::array<Duration, kGroupMax> expected;
  for (uint32_t i = 0; i < candidates.size(); ++i) {
    group.segments[i] = candidates[i].rest();
    asked[i] = std::span(group.segments.data(), i + 1);
  }
  durations.together(std::span(asked.data(), candidates.size()), expected);
  group.size = 1;
  while (group.size < candidates.size() && expected[group.size] <= limit) ++group.size;
  group.duration = expected[group.size - 1];
  if (group.size < candidates.size()) add_part(group, candidates[group.size], limit, durations);
  return group;
}

double gain(const Candidate& one, const Candidate& other, const DurationModel& durations) {
  const std::array<ExecSegment, 2> both{one.rest(), other.rest()};
  const std::span<const ExecSegment> asked(both);
  Duration together;
  durations.together(std::span(&asked, 1), std::span(&together, 1));
  return (both[0].alone + both[1].alone).to_seconds() / together.to_seconds();
}

}  // namespace foliot::overlap
