#include "load/workload/diurnal_trace.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "foundation/base/check.h"
#include "foundation/base/random.h"

namespace foliot {

std::vector<Duration> diurnal_trace(const DiurnalOptions& options) {
  FOLIOT_CHECK(options.arrivals > 0 && options.rate_least > 0 && options.rate_least <= options.rate_day &&
               options.rate_day <= options.rate_most);
  constexpr size_t kSteps = 10'000;
  Random random(options.seed);
  std::vector<double> rates(kSteps);
  for (size_t i = 0; i < kSteps; ++i) {
    const double day = (1 - std::cos(2 * std::numbers::pi * static_cast<double>(i) / kSteps)) / 2;
    rates[i] = options.rate_least + (options.rate_day - options.rate_least) * day;
  }
  for (uint32_t spike = 0; spike < options.spikes; ++spike) {
    // The first is the highest; the others reach part of the way up.
    const double height = spike == 0 ? options.rate_most : options.rate_day * (0.7 + 0.5 * random.uniform());
    const size_t length = kSteps / 50 + random.below(kSteps / 100);
    const size_t begin = random.below(kSteps - length);
    for (size_t i = begin; i < begin + length; ++i) {
      rates[i] = std::min(options.rate_most, std::max(rates[i], height));
    }
  }
  // Arrivals of a Poisson process, given their number, are so many independent draws.
  std::vector<double> sums(kSteps + 1, 0);
  for (size_t i = 0; i < kSteps; ++i) sums[i + 1] = sums[i] + rates[i];
  const double length = options.arrivals / (sums.back() / kSteps);
  std::vector<Duration> arrivals;
  arrivals.reserve(options.arrivals);
  for (uint32_t i = 0; i < options.arrivals; ++i) {
    const double at = random.uniform() * sums.back();
    const size_t step = static_cast<size_t>(std::ranges::upper_bound(sums, at) - sums.begin()) - 1;
    const double within = (at - sums[step]) / rates[step];
    arrivals.push_back(Duration::from_seconds((static_cast<double>(step) + within) / kSteps * length));
  }
  std::ranges::sort(arrivals);
  return arrivals;
}

}  // namespace foliot
