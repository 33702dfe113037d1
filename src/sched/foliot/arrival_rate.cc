#include "sched/foliot/arrival_rate.h"

#include <algorithm>
#include <cmath>

namespace foliot::foliot_policy {
namespace {

// How much of the likelihood so far is kept at each arrival.
constexpr double kKept = 0.95;
// Stands in for a rate of zero, whose logarithm is not finite: one in 1000 s.
constexpr double kRateMin = 1e-3;

}  // namespace

void ArrivalRate::record(TimePoint arrival) {
  const double gap = seen_ ? std::max((arrival - last_).to_seconds(), 0.0) : 0;
  for (size_t i = 0; i < kMemorySeconds.size(); ++i) {
    if (seen_) {
      const double rate = std::max(level_[i], kRateMin);
      likelihood_[i] = likelihood_[i] * kKept + std::log(rate) - rate * gap;
      level_[i] *= std::exp(-gap / kMemorySeconds[i]);
    }
    level_[i] += 1 / kMemorySeconds[i];
  }
  last_ = arrival;
  seen_ = true;
}

double ArrivalRate::at(TimePoint now) const {
  if (!seen_) return 0;
  const double gap = std::max((now - last_).to_seconds(), 0.0);
  std::array<double, 3> likelihood{};
  for (size_t i = 0; i < likelihood.size(); ++i) likelihood[i] = likelihood_[i] - level_[i] * gap;
  const double best = *std::max_element(likelihood.begin(), likelihood.end());
  double total = 0;
  double sum = 0;
  for (size_t i = 0; i < likelihood.size(); ++i) {
    const double weight = std::exp(likelihood[i] - best);
    total += weight;
    sum += weight * level_[i] * std::exp(-gap / kMemorySeconds[i]);
  }
  return sum / total;
}

}  // namespace foliot::foliot_policy
