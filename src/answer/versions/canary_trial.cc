#include "answer/versions/canary_trial.h"

#include <fmt/format.h>

namespace foliot {
namespace {

// Each of the tests has the same part of the probability of an error.
constexpr double kEvidenceMin = CanaryTrial::kNames.size() / CanaryTrial::kErrorProbability;

std::string shown(const RateComparison::Count& count) {
  return fmt::format("{:.6g} of {} ({:.2f} %)", count.failures, count.requests, 100 * count.rate());
}

}  // namespace

void CanaryTrial::add(bool is_canary, const VersionOutcome& outcome) {
  using End = VersionOutcome::End;
  if (outcome.end == End::kOther) return;
  if (outcome.end != End::kServed && !failed_.add(outcome.client)) return;
  tests_[0].add(is_canary, outcome.end == End::kFailed ? 1 : 0);
  tests_[1].add(is_canary, outcome.end == End::kMissed ? 1 : 0);
  if (outcome.end != End::kServed) return;
  if (slow_.is_known()) {
    const bool slow = slow_.is_slow(outcome.latency);
    if (!slow || slowed_.add(outcome.client)) tests_[2].add(is_canary, slow ? 1 : 0);
  }
  if (!is_canary) slow_.add(outcome.latency);
}

std::string CanaryTrial::verdict() const {
  for (size_t i = 0; i < tests_.size(); ++i) {
    const double evidence = tests_[i].evidence();
    if (evidence < kEvidenceMin) continue;
    return fmt::format("{}: {}, and {} of the stable version; evidence {:.0f}, limit {:.0f}", kNames[i],
                       shown(tests_[i].canary()), shown(tests_[i].stable()), evidence, kEvidenceMin);
  }
  return {};
}

}  // namespace foliot
