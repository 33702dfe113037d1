#include "control/policies/foliot/batch_wait.h"

#include <algorithm>

namespace foliot::foliot_policy {
namespace {

// Times the mean length of the gap in which an instant falls, which is twice the mean gap of a Poisson process: of
// that a batch is then cut short in one of some forty gaps. Where rows come in groups it is the gap between groups.
constexpr double kQuietGaps = 2;
// Clients that were just answered are awaited for so many times what they took of late, a mean of about so many times.
constexpr int64_t kReturns = 2;
constexpr int64_t kReturnsKept = 5;
// A batch with fewer rows than such a part of the last one's waits for its whole delay.
constexpr double kRowsAgain = 0.75;
// A trial waits for so many delays after the one before it; for twice as many after each that shows once more that
// waits are in vain, up to so long.
constexpr int64_t kTrialInterval = 20;
constexpr uint32_t kDoublingsMax = 16;
constexpr Duration kTrialIntervalMax = Duration::seconds(1);
// Before so many trials, all batches are trials.
constexpr size_t kTrialsMin = 2;
// Where rows come to fewer than one trial in so many, batches do not wait.
constexpr size_t kTrialsForOne = 4;

}  // namespace

void BatchWait::begin(const Batch& batch, size_t rows, TimePoint now) {
  batch_ = batch;
  note_return(batch.arrival);
  begin_ = grown_ = now;
  rows_ = rows;
  if (rows > 1) in_vain_ = 0;
  gaps_ = squares_ = 0;
  trial_ = trial_count_ < kTrialsMin || doubtful_ || now >= last_trial_ + trial_interval();
  waits_ = batch.delay > Duration() && (trial_ || worth_it_);
  over_ = !waits_;
}

void BatchWait::sent(DeviceId device, size_t rows) {
  computes_on_ = device;
  sent_rows_ = rows;
}

void BatchWait::answered(DeviceId device, TimePoint now) {
  if (computes_on_ == device) computes_on_.reset();
  answered_ = now;
  returned_ = false;
  if (waits_ && !trial_) over_ = false;
}

void BatchWait::note_return(TimePoint arrival) {
  if (returned_ || arrival < answered_) return;
  returned_ = true;
  return_ += (std::min(arrival - answered_, batch_->delay) - return_) / kReturnsKept;
}

std::optional<TimePoint> BatchWait::look(size_t rows, TimePoint now) {
  if (over_) return std::nullopt;
  if (rows > rows_) {
    const double gap = (now - grown_).to_seconds();
    gaps_ += gap;
    squares_ += gap * gap;
    grown_ = now;
    note_return(now);
  }
  rows_ = rows;
  const TimePoint longest = batch_->arrival + batch_->delay;
  const TimePoint returned = begin_ < answered_ ? answered_ + std::max(quiet(), return_ * kReturns) : begin_;
  const bool few = static_cast<double>(rows) < kRowsAgain * static_cast<double>(sent_rows_);
  const TimePoint until = trial_ || few ? longest : std::min(longest, std::max(grown_ + quiet(), returned));
  if (now < until) return until;
  over_ = true;
  // A device that was busy leaves a batch too little of its delay to learn from.
  if (trial_ && now - begin_ >= batch_->delay / 2) learn(now);
  return std::nullopt;
}

void BatchWait::learn(TimePoint end) {
  last_trial_ = end;
  trials_[trial_count_++ % kTrialsKept] = gaps_ > 0 ? squares_ / gaps_ : 0;
  const size_t kept = std::min(trial_count_, kTrialsKept);
  std::array<double, kTrialsKept> gained;
  const auto last =
      std::copy_if(trials_.begin(), trials_.begin() + kept, gained.begin(), [](double gap) { return gap > 0; });
  const auto count = static_cast<size_t>(last - gained.begin());
  worth_it_ = count * kTrialsForOne >= kept;
  doubtful_ = worth_it_ != (gaps_ > 0);
  in_vain_ = worth_it_ || doubtful_ ? 0 : std::min(in_vain_ + 1, kDoublingsMax);
  // One trial in which a client was held up is not to have all others wait for it.
  std::nth_element(gained.begin(), gained.begin() + count / 2, last);
  gap_ = count > 0 ? gained[count / 2] : 0;
}

Duration BatchWait::trial_interval() const {
  const Duration shortest = batch_->delay * kTrialInterval;
  return std::max(shortest, std::min(kTrialIntervalMax, shortest * (int64_t{1} << in_vain_)));
}

Duration BatchWait::quiet() const {
  return gap_ == 0 ? batch_->delay : std::min(batch_->delay, Duration::from_seconds(kQuietGaps * gap_));
}

}  // namespace foliot::foliot_policy
