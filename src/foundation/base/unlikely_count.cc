#include "foundation/base/unlikely_count.h"

#include <algorithm>
#include <cmath>

namespace foliot {
namespace {

// Of `least` or more successes (the binomial distribution).
double probability(uint32_t trials, double share, uint32_t least) {
  double sum = 0;
  for (uint32_t k = least; k <= trials; ++k) {
    const double ways = std::exp(std::lgamma(trials + 1.0) - std::lgamma(k + 1.0) - std::lgamma(trials - k + 1.0));
    sum += ways * std::pow(share, k) * std::pow(1 - share, trials - k);
  }
  return sum;
}

}  // namespace

UnlikelyCount::UnlikelyCount(uint32_t trials, double chance) {
  for (uint32_t least = 1; least <= trials; ++least) {
    double low = 0;
    double high = 1;
    for (int i = 0; i < 40; ++i) {
      const double middle = (low + high) / 2;
      (probability(trials, middle, least) < chance ? low : high) = middle;
    }
    share_max_.push_back(low);
  }
}

uint32_t UnlikelyCount::of(double share) const {
  return static_cast<uint32_t>(std::ranges::lower_bound(share_max_, share) - share_max_.begin()) + 1;
}

}  // namespace foliot
