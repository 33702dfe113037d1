#include "control/controller/device_timing.h"

#include <algorithm>
#include <limits>

#include "foundation/base/unlikely_count.h"

namespace foliot {
namespace {

// Means of what is assumed before anything is measured: threads of one machine or of two
// in one room.
constexpr Duration kDeliveryPrior = Duration::microseconds(50);
constexpr Duration kReportPrior = Duration::microseconds(50);
constexpr Duration kLatenessPrior = Duration::microseconds(100);

// Of the answers that are planned to be ready just in time, at least so many may be late. Few answers
// are, and by no more than the tail is long: of all, less than 1 in 100,000 is.
constexpr double kLateShareMin = 2e-3;
constexpr double kUrgencyExecs = 64;  // after so many it has followed a change
constexpr double kUnusualShare = 0.01;
constexpr double kIdleShare = 1e-3;  // of actions that come later than was looked ahead
// How much sooner than planned an EXEC may end, and later than asked a loop wake up.
constexpr Duration kLookaheadSlack = Duration::microseconds(100);
// Nothing is sent earlier than this for the sake of rare delays.
constexpr Duration kLookaheadOfStalls = Duration::milliseconds(5);
constexpr Duration kTimingDoubtInterval = Duration::milliseconds(5);
// What was measured so long ago says nothing of a device that has been idle since, while it
// is the reason for refusals. Where that turns out to be so all the same, it is believed
// for longer each time.
constexpr Duration kBelievedMin = Duration::seconds(1);
constexpr Duration kBelievedMax = Duration::seconds(64);
constexpr double kDoubt = 0.75;
constexpr double kTrustRegained = 0.01;
constexpr double kTrustRegainedLate = 0.25;

const UnlikelyCount& unlikely_recent() {
  static const UnlikelyCount unlikely(TailWindow::kRecent);
  return unlikely;
}

}  // namespace

DeviceTiming::DeviceTiming(const DeviceTimingOptions& options)
    : options_(options),
      deliveries_(kDeliveryPrior),
      reports_(kReportPrior),
      lateness_(kLatenessPrior),
      believed_(kBelievedMin) {
  update();
}

void DeviceTiming::on_sent(ActionId action, TimePoint planned_end, std::optional<Duration> time, TimePoint now) {
  if (time && *time > Duration()) urgency_ += (1 / time->to_seconds() - urgency_) / kUrgencyExecs;
  sent_.push_back({action, now, planned_end});
}

bool DeviceTiming::on_outcome(const Action& action, const Outcome& outcome, TimePoint now, Duration apart) {
  const auto found = std::ranges::find(sent_, action.id, &Sent::action);
  if (found == sent_.end()) return false;
  const Sent sent = *found;
  sent_.erase(found);
  const bool too_late = outcome.status == OutcomeStatus::kTooLate;
  if (!outcome.done() && !too_late) return false;
  last_outcome_ = now;
  bool changed = trust_ < 1;
  // Clocks of different machines agree only so well.
  const auto since = [&](TimePoint from, TimePoint to) { return std::clamp(to - from, Duration(), now - sent.at); };
  if (outcome.ready > TimePoint()) changed |= deliveries_.record(since(sent.at, outcome.ready), now);
  if (!too_late) changed |= reports_.record(since(outcome.end, now), now);
  // What was refused would have begun then at the earliest.
  const Duration unspent = too_late ? action.expected : Duration();
  const Duration lateness = now - apart + unspent - sent.planned_end;
  changed |= lateness_.record(lateness - waited(action, outcome, sent), now);
  last_end_ = std::max(last_end_, outcome.end);
  trust_ = std::min(1.0, trust_ + (lateness > margin_ ? kTrustRegainedLate : kTrustRegained));
  if (changed) update();
  return changed;
}

// It waited so long, beyond the plan, for what was before it on the device. So one slow EXEC counts once, and not for
// each that was sent before it was over.
Duration DeviceTiming::waited(const Action& action, const Outcome& outcome, const Sent& sent) const {
  if (outcome.ready == TimePoint()) return Duration();
  const TimePoint could_begin = std::max(outcome.ready, sent.planned_end - action.expected);
  return std::max(Duration(), std::min(outcome.start, last_end_) - could_begin);
}

bool DeviceTiming::on_refusal(TimePoint arrival, Duration time, Duration exec, TimePoint now) {
  if (!sent_.empty() || arrival <= last_outcome_ || now < next_doubt_) return false;
  if (time >= exec && now - last_outcome_ >= believed_) {
    forget(now);
    return true;
  }
  const Duration least = std::max(Duration(), deliveries_.median()) + std::max(Duration(), lateness_.median());
  if (time < exec + least) return false;
  next_doubt_ = now + kTimingDoubtInterval;
  trust_ *= kDoubt;
  update();
  return true;
}

void DeviceTiming::forget(TimePoint now) {
  deliveries_ = TailWindow(kDeliveryPrior);
  reports_ = TailWindow(kReportPrior);
  lateness_ = TailWindow(kLatenessPrior);
  trust_ = 1;
  // What is measured for some time from now on was worth the doubt.
  believed_ = last_outcome_ - forgotten_ > believed_ ? kBelievedMin : std::min(believed_ * 2, kBelievedMax);
  forgotten_ = now;
  last_outcome_ = now;
  update();
}

void DeviceTiming::update() {
  const auto trusted = [&](const TailWindow& window, Duration tail) {
    const Duration measured = std::max(tail, window.recent());
    return std::max(Duration(), window.median() + (measured - window.median()).scaled(trust_));
  };
  delivery_ = trusted(deliveries_, deliveries_.tail(kUnusualShare));
  report_ = trusted(reports_, reports_.tail(kUnusualShare));
  // What is sent early cannot be joined by what comes later: a device that is rarely far
  // away had better be idle then than run small batches all the time.
  const Duration usual = std::max(Duration(), deliveries_.median()) * 2 + kLookaheadOfStalls;
  lookahead_ =
      std::max(delivery_, std::min(trusted(deliveries_, deliveries_.tail(kIdleShare)), usual)) + kLookaheadSlack;
  const Margin cheapest = cheapest_margin();
  // What is exceeded as often as the margin is meant to be is no change.
  lateness_.set_recent_above(std::max(TailWindow::kRecentAbove, unlikely_recent().of(cheapest.late_share) - 1));
  margin_ = options_.margin_fixed.value_or(std::max(options_.margin_min, trusted(lateness_, cheapest.time)));
}

// A margin costs the part of the requests' time that it takes, and the share that is late in spite of it. Were a late
// answer to cost more than a refusal, the cheapest margin of a long tail would be the one that refuses all.
DeviceTiming::Margin DeviceTiming::cheapest_margin() const {
  Margin cheapest{lateness_.tail(kLateShareMin), kLateShareMin};
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](const Margin& margin) {
    const double cost = margin.late_share + margin.time.to_seconds() * urgency_;
    if (cost >= least) return;
    least = cost;
    cheapest = margin;
  };
  consider(cheapest);
  for (size_t i = 0; i < TailWindow::kParts.size(); ++i) {
    consider({lateness_.quantiles()[i], 1.0 / TailWindow::kParts[i]});
  }
  consider({lateness_.median(), 0.5});
  return cheapest;
}

}  // namespace foliot
