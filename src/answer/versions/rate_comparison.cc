#include "answer/versions/rate_comparison.h"

#include <algorithm>
#include <cmath>

namespace foliot {
namespace {

// Requests that the share counts for beside those that came: with keys, those of a few may be many.
constexpr double kRequestsOfShare = 100;

}  // namespace

double RateComparison::share() const {
  const auto canary = static_cast<double>(canary_.requests);
  const double both = canary + static_cast<double>(stable_.requests);
  return std::max(share_, (kRequestsOfShare * share_ + canary) / (kRequestsOfShare + both));
}

void RateComparison::add(bool is_canary, double loss) {
  loss = std::clamp(loss, 0.0, 1.0);
  const double odds = tolerated_ * share() / (1 - share());
  Count& count = is_canary ? canary_ : stable_;
  ++count.requests;
  count.failures += loss;
  if (loss == 0) return;
  evidence_ = 0;
  for (size_t i = 0; i < kRatios.size(); ++i) {
    // Of the two likelihoods that a failure is this version's.
    const double stable = (1 + odds) / (1 + odds * kRatios[i]);
    logs_[i] += std::log1p(loss * ((is_canary ? stable * kRatios[i] : stable) - 1));
    evidence_ += std::exp(logs_[i]) / static_cast<double>(kRatios.size());
  }
}

}  // namespace foliot
