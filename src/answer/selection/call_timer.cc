#include "answer/selection/call_timer.h"

#include <algorithm>
#include <utility>

namespace foliot {
namespace {

constexpr Duration kReserveMin = Duration::microseconds(500);
constexpr int64_t kReserveMinPart = 20;  // of a call's time, if that is less
// Of a call's time, at least and at most: of a long one, little is lost by this.
constexpr int64_t kDuePartMin = 50;
constexpr int64_t kDuePartMax = 4;
// Mean of what is assumed before anything is measured.
constexpr Duration kLatenessPrior = Duration::microseconds(50);
// Of the answers that are due, so many may be late.
constexpr double kLateShare = 1e-2;

}  // namespace

Duration least_reserve(TimePoint arrival, TimePoint deadline) {
  return std::min(kReserveMin, (deadline - arrival) / kReserveMinPart);
}

CallTimer::CallTimer(std::function<void(CallId)> expire) : CallAlarms(std::move(expire)), lateness_(kLatenessPrior) {}

TimePoint CallTimer::due(TimePoint arrival, TimePoint deadline) const {
  const MutexLock lock(mutex_);
  const Duration time = deadline - arrival;
  const Duration measured = std::max(lateness_.tail(kLateShare), lateness_.recent());
  const Duration least = std::max(least_reserve(arrival, deadline), time / kDuePartMin);
  return deadline - std::max(least, std::min(measured, time / kDuePartMax));
}

void CallTimer::record(TimePoint due, TimePoint now) {
  const MutexLock lock(mutex_);
  lateness_.record(std::max(now - due, Duration()), now);
}

}  // namespace foliot
