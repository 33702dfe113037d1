#include "control/policies/foliot/arrival_period.h"

#include <algorithm>
#include <bit>

namespace foliot::foliot_policy {
namespace {

// Evidence is counted in bits: how many times less likely an arrival is to be as near to a
// tick by chance. A single arrival is not worth more than kHitMax.
constexpr int kBelieved = 8;
constexpr int kEvidenceMax = 16;
constexpr int kHitMax = 8;
constexpr int kMiss = 6;
// An arrival belongs to a tick if it is no further from it than this share of the period.
constexpr int64_t kShare = 8;
// So many ticks may pass without an arrival.
constexpr int64_t kSkippedMax = 3;
// The filter trusts an arrival less the more have come before it.
constexpr uint8_t kHitsMax = 6;

}  // namespace

void ArrivalPeriod::begin(TimePoint arrival, Duration gap) {
  tick_ = arrival;
  period_ = gap;
  error_ = Duration();
  evidence_ = 0;
  hits_ = 0;
}

void ArrivalPeriod::record(TimePoint arrival) {
  if (last_ != kNever && arrival <= last_) return;
  const Duration gap = last_ == kNever ? Duration() : arrival - last_;
  last_ = arrival;
  if (period_ <= Duration()) return begin(arrival, gap);

  const int64_t period = period_.nanoseconds();
  const int64_t elapsed = (arrival - tick_).nanoseconds();
  const int64_t ticks = (elapsed + period / 2) / period;
  const int64_t distance = elapsed - ticks * period;
  const int64_t away = distance < 0 ? -distance : distance;
  if (ticks > kSkippedMax + 1 || away > period / kShare) {
    evidence_ = static_cast<int8_t>(evidence_ - kMiss);
    if (evidence_ < 0) begin(arrival, gap);
    return;
  }
  if (ticks <= 0) return;  // another request of the same tick
  hits_ = std::min<uint8_t>(kHitsMax, hits_ + 1);
  // Bits: the share of the period within which it came, of what would count as a hit.
  const auto nearness = static_cast<uint64_t>(period / (2 * kShare * std::max<int64_t>(away, 1)));
  const int bits = std::min(kHitMax, static_cast<int>(std::bit_width(nearness)));
  evidence_ = static_cast<int8_t>(std::min(kEvidenceMax, evidence_ + bits));
  error_ = hits_ == 1 ? Duration::nanoseconds(away) : error_ + (Duration::nanoseconds(away) - error_) / hits_;
  tick_ = tick_ + period_ * ticks + Duration::nanoseconds(2 * distance / (hits_ + 2));
  period_ += Duration::nanoseconds(2 * distance / ((hits_ + 2) * (hits_ + 1) * ticks));
}

bool ArrivalPeriod::believed() const { return evidence_ >= kBelieved && period_ > Duration(); }

Duration ArrivalPeriod::tolerance() const { return std::min(error_ * 4 + period_ / 128, period_ / kShare); }

std::optional<ArrivalPeriod::Prediction> ArrivalPeriod::next(TimePoint now) const {
  if (!believed()) return std::nullopt;
  const Duration since = now - tolerance() - tick_;
  const int64_t passed = since < Duration() ? 0 : since.nanoseconds() / period_.nanoseconds();
  if (passed > kSkippedMax) return std::nullopt;
  return Prediction{tick_ + period_ * (passed + 1), error_};
}

}  // namespace foliot::foliot_policy
