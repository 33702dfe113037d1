#include "control/policies/foliot/arrival_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace foliot::foliot_policy {
namespace {

// How much of the likelihood so far is kept at each arrival.
constexpr double kKept = 0.95;
// Stands in for a rate of zero, whose logarithm is not finite: one in 1000 s.
constexpr double kLikelyRateMin = 1e-3;
// The odds that an arrival is the last one before the model falls idle.
constexpr double kLast = 0.005;
// Of an idle model so much of the longest counter's rate is expected.
constexpr double kIdleShare = 0.4;
// A gap in which the model was idle says no more than this against a counter.
constexpr double kUnlikelihoodMax = 4;
// Those of the counters that stand still while the model is idle.
constexpr size_t kStanding = 2;
// Idleness is distinguished from a lower rate by the last gaps, of which so many count.
constexpr double kGapsRemembered = 16;
// Where more of them than this part are silences, the model is not idle between bursts.
constexpr double kSilencesMax = 0.25;

// What is left of each counter after a gap: exp(-gap / memory), the shorter memories as
// powers of the longest, which is 8 and 60 times theirs.
std::array<double, 3> decay_after(double gap_seconds) {
  const double of_120 = std::exp(-gap_seconds / 120);
  const double two = of_120 * of_120;
  const double four = two * two;
  const double of_15 = four * four;
  const double thirty_two = of_15 * of_15 * of_15 * of_15;
  const double of_2 = thirty_two * of_15 * of_15 * of_15 * four;
  return {of_2, of_15, of_120};
}

}  // namespace

// A counter foretells a rate that falls as it forgets: after a gap, level * decay,
// and so many arrivals within it as that has area.
void ArrivalRate::record(TimePoint arrival) {
  const double gap = seen() ? std::max((arrival - last_).to_seconds(), 0.0) : 0;
  const std::array<double, 3> decay = decay_after(gap);
  const double stands = this->stands(gap);
  for (size_t i = 0; i < kMemorySeconds.size(); ++i) {
    const double counts = i < kStanding ? 1 - stands : 1;
    if (seen()) {
      const double foretold = level_[i] * kMemorySeconds[i] * (1 - decay[i]);
      const double likelihood = std::log(std::max(level_[i] * decay[i], kLikelyRateMin)) - foretold;
      const double of_idleness = std::max(likelihood, -kUnlikelihoodMax);
      likelihood_[i] = static_cast<float>(likelihood_[i] * kKept + of_idleness + counts * (likelihood - of_idleness));
    }
    level_[i] = level_[i] * (1 - counts * (1 - decay[i])) + counts / kMemorySeconds[i];
  }
  last_ = arrival;
  known_ = 0;
}

double ArrivalRate::stands(double gap) {
  const double idle = 1 - in_use(gap);
  const double stands = idle * std::max(0.0, 1 - silences_ / kSilencesMax);
  silences_ += static_cast<float>((idle - silences_) / kGapsRemembered);
  return stands;
}

double ArrivalRate::likeliest_level() const {
  size_t likeliest = 0;
  for (size_t i = 1; i < likelihood_.size(); ++i) {
    if (likelihood_[i] > likelihood_[likeliest]) likeliest = i;
  }
  return level_[likeliest];
}

// Bayes' rule: a model in use would have been silent for so long with exp(-awaited).
double ArrivalRate::in_use(double silence) const {
  const double awaited = std::min(likeliest_level() * silence, 50.0);
  return (1 + kLast) / (1 + kLast * std::exp(awaited));
}

// exp(x) is less than the next power of two.
double ArrivalRate::in_use_at_least(double silence) const {
  const double awaited = std::min(likeliest_level() * silence, 40.0);
  return (1 + kLast) /
         (1 + kLast * static_cast<double>(uint64_t{1} << (static_cast<int>(awaited * std::numbers::log2e) + 1)));
}

double ArrivalRate::at(TimePoint now) const {
  if (!seen()) return 0;
  const double gap = std::max((now - last_).to_seconds(), 0.0);
  const std::array<double, 3> decay = decay_after(gap);
  std::array<double, 3> likelihood{};
  for (size_t i = 0; i < decay.size(); ++i) {
    likelihood[i] = likelihood_[i] - level_[i] * kMemorySeconds[i] * (1 - decay[i]);
  }
  const double best = *std::max_element(likelihood.begin(), likelihood.end());
  double total = 0;
  double sum = 0;
  for (size_t i = 0; i < decay.size(); ++i) {
    const double weight = std::exp(likelihood[i] - best);
    total += weight;
    sum += weight * level_[i] * decay[i];
  }
  const double rate = sum / total;
  const double idle_rate = std::min(rate, level_[2] * decay[2] * kIdleShare);
  known_ = idle_rate + in_use(gap) * (rate - idle_rate);
  known_at_ = now;
  return known_;
}

// With rates r_i of the three counters, their weights w_i and their mean r, dr/dt is
// -sum(w_i * r_i / memory_i) less the variance of the r_i under w: no less than
// -r / 2 s - r * max(r_i); for the chance that it is idle, -r * max(r_i) once more. And
// exp(-x) >= 1 - x.
double ArrivalRate::at_least(TimePoint now) const {
  constexpr double kRounding = 1 - 1e-9;
  if (!seen()) return 0;
  const auto [least, most] = std::minmax_element(level_.begin(), level_.end());
  const double silence = std::max((now - last_).to_seconds(), 0.0);
  const double by_level = *least * (1 - silence / kMemorySeconds.front()) * in_use_at_least(silence);
  const double by_known = known_ * (1 - (now - known_at_).to_seconds() * (1 / kMemorySeconds.front() + 2 * *most));
  return std::max({by_level, by_known, 0.0}) * kRounding;
}

}  // namespace foliot::foliot_policy
