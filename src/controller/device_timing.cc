#include "controller/device_timing.h"

#include <algorithm>

namespace foliot {
namespace {

// Means of what is assumed before anything is measured: threads of one machine or of two
// in one room.
constexpr Duration kDeliveryPrior = Duration::microseconds(50);
constexpr Duration kReportPrior = Duration::microseconds(50);
constexpr Duration kLatenessPrior = Duration::microseconds(100);

// Of the answers that are planned to be ready just in time, so many are late. Few answers
// are, and by no more than the tail is long: of all, less than 1 in 100,000 is.
constexpr double kLateShare = 1e-3;
constexpr double kUnusualShare = 0.01;
constexpr double kIdleShare = 1e-3;  // of actions that come later than was looked ahead
// How much sooner than planned an EXEC may end, and later than asked a loop wake up.
constexpr Duration kLookaheadSlack = Duration::microseconds(100);
constexpr Duration kTimingDoubtInterval = Duration::milliseconds(500);
constexpr Duration kDoubtAfter = Duration::seconds(1);

}  // namespace

DeviceTiming::DeviceTiming(const DeviceTimingOptions& options)
    : options_(options), deliveries_(kDeliveryPrior), reports_(kReportPrior), lateness_(kLatenessPrior) {
  update();
}

void DeviceTiming::on_sent(ActionId action, TimePoint planned_end, TimePoint now) {
  sent_.push_back({action, now, planned_end});
}

bool DeviceTiming::on_outcome(const Action& action, const Outcome& outcome, TimePoint now) {
  const auto found = std::ranges::find(sent_, action.id, &Sent::action);
  if (found == sent_.end()) return false;
  const Sent sent = *found;
  sent_.erase(found);
  const bool too_late = outcome.status == OutcomeStatus::kTooLate;
  if (!outcome.done() && !too_late) return false;
  next_doubt_ = now + kDoubtAfter;
  bool changed = false;
  // Clocks of different machines agree only so well.
  const auto since = [&](TimePoint from, TimePoint to) { return std::clamp(to - from, Duration(), now - sent.at); };
  if (outcome.ready > TimePoint()) changed |= deliveries_.record(since(sent.at, outcome.ready), now);
  if (!too_late) changed |= reports_.record(since(outcome.end, now), now);
  // What was refused would have begun then at the earliest.
  const Duration unspent = too_late ? action.expected : Duration();
  changed |= lateness_.record(now + unspent - sent.planned_end, now);
  if (changed) update();
  return changed;
}

bool DeviceTiming::doubt(TimePoint now) {
  if (now < next_doubt_) return false;
  next_doubt_ = now + kTimingDoubtInterval;
  deliveries_.doubt(now);
  reports_.doubt(now);
  lateness_.doubt(now);
  update();
  return true;
}

void DeviceTiming::update() {
  const auto usual = [](const TailWindow& window) { return std::max(window.tail(kUnusualShare), window.recent()); };
  delivery_ = std::max(Duration(), usual(deliveries_));
  report_ = std::max(Duration(), usual(reports_));
  lookahead_ = std::max(delivery_, deliveries_.tail(kIdleShare)) + kLookaheadSlack;
  margin_ = options_.margin_fixed.value_or(
      std::max({options_.margin_min, lateness_.tail(kLateShare), lateness_.recent(), Duration()}));
}

}  // namespace foliot
