// UnlikelyCount: how many of some trials are more than chance, where each succeeds with some probability.
//
// It distinguishes values that are rare but usual from a change: of sixteen values that exceed a bound once in ten
// times seven or more do so once in 2,000 times, and of those that exceed it once in 500 times, two do.
#ifndef FOLIOT_FOUNDATION_BASE_UNLIKELY_COUNT_H_
#define FOLIOT_FOUNDATION_BASE_UNLIKELY_COUNT_H_

#include <cstdint>
#include <vector>

namespace foliot {

// Immutable. The constructor allocates.
class UnlikelyCount {
 public:
  // `chance`: of as many successes or more.
  explicit UnlikelyCount(uint32_t trials, double chance = 1e-3);

  // The least number of successes that is unlikely; trials + 1 if none is. `share`: of successes, from 0 to 1.
  uint32_t of(double share) const;

 private:
  std::vector<double> share_max_;  // [k]: up to this share k + 1 successes are unlikely
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_UNLIKELY_COUNT_H_
