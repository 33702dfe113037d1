#include "planning/pipelines/arrival_watch.h"

#include <algorithm>
#include <cmath>

namespace foliot {
namespace {

// Of the maximum of some thousand counts, above their mean.
constexpr double kDeviationsOfMost = 3.7;

}  // namespace

ArrivalWatch::ArrivalWatch(const Envelope& planned, double rate, size_t arrivals_most)
    : rate_(rate), windows_(planned.windows, arrivals_most) {
  for (size_t i = 0; i < planned.most.size(); ++i) {
    const double mean = rate * planned.windows[i].to_seconds();
    const double deviation = (planned.most[i] - mean) / kDeviationsOfMost;
    // Counts of less than one on average are no normal ones.
    if (mean >= 1 && deviation > 0) dispersion_ = std::max(dispersion_, deviation * deviation / mean);
  }
  for (size_t i = 0; i < planned.most.size(); ++i) {
    const double mean = rate * planned.windows[i].to_seconds();
    threshold_.push_back(planned.most[i] + kDeviations * std::sqrt(dispersion_ * std::max(mean, 1.0)));
  }
}

std::optional<ArrivalWatch::Surge> ArrivalWatch::arrive(TimePoint now) {
  windows_.add(now);
  std::optional<Surge> surge;
  for (size_t i = 0; i < threshold_.size(); ++i) {
    const double count = windows_.counts()[i];
    if (count <= threshold_[i]) continue;
    const double seconds = windows_.windows()[i].to_seconds();
    const double deviation = std::sqrt(dispersion_ * count);
    if (!surge) surge.emplace();
    surge->certain = std::max(surge->certain, (count - kDeviations * deviation) / seconds);
    surge->likely = std::max(surge->likely, (count - deviation) / seconds);
  }
  if (!surge) return surge;
  surged_ = true;
  last_surge_ = now;
  return surge;
}

bool ArrivalWatch::as_planned(TimePoint now, double counted, Duration window) const {
  if (surged_ && now - last_surge_ < kCalm) return false;
  const double mean = rate_ * window.to_seconds();
  return counted >= mean - kDeviationsBelow * std::sqrt(dispersion_ * mean);
}

}  // namespace foliot
