#include "policies/foliot/batch_wait.h"

#include <algorithm>

namespace foliot::foliot_policy {
namespace {

// Times the mean length of the gap in which an instant falls, which is twice the mean gap of a Poisson process: of
// that a batch is then cut short in one of some forty gaps. Where rows come in groups it is the gap between groups.
constexpr double kQuietGaps = 2;
// A trial waits for so many delays after the one before it; for twice as many after each that was in vain, up to so
// long.
constexpr int64_t kTrialInterval = 20;
constexpr uint32_t kDoublingsMax = 16;
constexpr Duration kTrialIntervalMax = Duration::seconds(1);
// What a trial counts once another one has followed.
constexpr double kTrialKept = 0.7;
// Before so many have counted, all batches are trials.
constexpr double kTrialsMin = 1.5;
// Where rows come to a smaller share of trials, waits are in vain.
constexpr double kGainedMin = 0.25;

}  // namespace

std::optional<TimePoint> BatchWait::look(RequestId first, TimePoint arrival, size_t rows, TimePoint now,
                                         Duration delay) {
  if (first_ != first) begin(first, rows, now, delay);
  if (over_) return std::nullopt;
  if (rows > rows_) {
    const double gap = (now - grown_).to_seconds();
    gaps_ += gap;
    squares_ += gap * gap;
    grown_ = now;
  }
  rows_ = rows;
  const TimePoint until = trial_ ? arrival + delay : std::min(arrival + delay, grown_ + quiet(delay));
  if (now < until) return until;
  over_ = true;
  // A device that was busy leaves a batch too little of its delay to learn from.
  if (trial_ && now - begin_ >= delay / 2) learn(now);
  return std::nullopt;
}

void BatchWait::begin(RequestId first, size_t rows, TimePoint now, Duration delay) {
  first_ = first;
  begin_ = grown_ = now;
  rows_ = rows;
  if (rows > 1) in_vain_ = 0;
  gaps_ = squares_ = 0;
  trial_ = trials_ < kTrialsMin || now >= last_trial_ + trial_interval(delay);
  over_ = !trial_ && gained_ < kGainedMin * trials_;
}

void BatchWait::learn(TimePoint end) {
  for (double* const each : {&trials_, &gained_, &all_gaps_, &all_squares_}) *each *= kTrialKept;
  ++trials_;
  gained_ += gaps_ > 0 ? 1 : 0;
  all_gaps_ += gaps_;
  all_squares_ += squares_;
  in_vain_ = gaps_ > 0 ? 0 : std::min(in_vain_ + 1, kDoublingsMax);
  last_trial_ = end;
}

Duration BatchWait::trial_interval(Duration delay) const {
  const Duration shortest = delay * kTrialInterval;
  return std::max(shortest, std::min(kTrialIntervalMax, shortest * (int64_t{1} << in_vain_)));
}

Duration BatchWait::quiet(Duration delay) const {
  if (all_gaps_ == 0) return delay;
  return std::min(delay, Duration::from_seconds(kQuietGaps * all_squares_ / all_gaps_));
}

}  // namespace foliot::foliot_policy
