#include "load/workload/popularity.h"

#include <algorithm>
#include <cmath>

#include "foundation/base/check.h"

namespace foliot {

Popularity::Popularity(uint32_t count, double exponent) {
  FOLIOT_CHECK(count > 0 && exponent >= 0);
  cumulative_.reserve(count);
  double sum = 0;
  for (uint32_t i = 0; i < count; ++i) {
    sum += std::pow(i + 1.0, -exponent);
    cumulative_.push_back(sum);
  }
}

uint32_t Popularity::draw(Random& random) const {
  const double point = random.uniform() * cumulative_.back();
  const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), point);
  // Rounding may put the point onto the very end.
  return static_cast<uint32_t>(std::min(found, cumulative_.end() - 1) - cumulative_.begin());
}

}  // namespace foliot
