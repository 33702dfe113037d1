#include "foundation/base/tail_window.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace foliot {
namespace {

// All of it is looked at again after so many values, or an eighth of what there are, or
// a second after the first of them.
constexpr uint32_t kRefreshInterval = 128;
constexpr uint32_t kRefreshPart = 8;
constexpr Duration kRefreshAge = Duration::seconds(1);
constexpr Duration kAgeMax = Duration::seconds(20);
constexpr uint32_t kKeptMin = 32;
// Of the values, one of kParts, the largest ones, make the tail: the one that says
// the least. So of two kinds of values, of which the smaller ones are many, only the larger
// ones count. Of those that are a hundredth of all, only that they are no smaller than the
// next is believed. More than a tenth are no tail.
constexpr uint32_t kTailMin = 3;
constexpr uint32_t kTailPart = 10;
constexpr uint32_t kStallPart = 100;
constexpr double kFarOut = 1e-3;
// Near the median: so many parts of the values on either side of it.
constexpr uint32_t kMiddlePart = 16;

}  // namespace

TailWindow::TailWindow(Duration prior_mean) {
  last_.fill(-Duration::max());
  values_.reserve(kSize);
  times_.reserve(kSize);
  // In an order in which those that are not yet replaced are always of all sizes.
  for (uint32_t i = 0; i < kPriorSize; ++i) {
    const uint32_t rank = i * 37 % kPriorSize;
    const double excess = std::log(kPriorSize / (rank + 0.5));
    values_.push_back(prior_mean.scaled(excess));
    times_.push_back(TimePoint::infinite_future());
  }
  refresh(TimePoint());
}

bool TailWindow::record(Duration value, TimePoint now) {
  if (next_ == values_.size()) {
    values_.push_back(value);
    times_.push_back(now);
  } else {
    values_[next_] = value;
    times_[next_] = now;
  }
  next_ = (next_ + 1) % kSize;
  const bool changed = note_recent(value);
  const auto count = static_cast<uint32_t>(values_.size());
  const TimePoint first_new = times_[(next_ + count - ++since_refresh_) % count];
  const bool enough = since_refresh_ >= std::min(kRefreshInterval, count / kRefreshPart);
  if (!enough && now - first_new < kRefreshAge) return changed;
  refresh(now);
  return true;
}

bool TailWindow::note_recent(Duration value) {
  const Duration forgotten = std::exchange(last_[next_last_], value);
  next_last_ = (next_last_ + 1) % kRecent;
  above_recent_ += (value > recent_ ? 1 : 0) - (forgotten > recent_ ? 1 : 0);
  below_recent_ += (value < recent_ ? 1 : 0) - (forgotten < recent_ ? 1 : 0);
  if (above_recent_ <= recent_rank_ && below_recent_ < kRecent - recent_rank_) return false;
  find_recent();
  return true;
}

void TailWindow::set_recent_above(uint32_t count) {
  if (std::exchange(recent_rank_, count) != count) find_recent();
}

void TailWindow::find_recent() {
  std::array<Duration, kRecent> ordered = last_;
  std::nth_element(ordered.begin(), ordered.begin() + recent_rank_, ordered.end(), std::greater<>());
  recent_ = ordered[recent_rank_];
  above_recent_ = below_recent_ = 0;
  for (const Duration each : last_) {
    above_recent_ += each > recent_ ? 1 : 0;
    below_recent_ += each < recent_ ? 1 : 0;
  }
}

Duration TailWindow::tail(double share) const {
  return threshold_ + mean_excess_.scaled(std::log(share_above_ / share));
}

std::span<const Duration> TailWindow::young(TimePoint now, Values& scratch) const {
  // Where the oldest is: behind the newest, unless some of the prior are there still.
  const size_t oldest = values_.size() == kSize ? next_ : 0;
  const bool all_measured = values_.size() == kSize || next_ == values_.size();
  if (all_measured && now - times_[oldest] <= kAgeMax) return values_;
  uint32_t count = 0;
  // From the newest on; false at the first that is too old.
  const auto take = [&](size_t begin, size_t end) {
    for (size_t i = end; i-- > begin;) {
      if (count >= kKeptMin && !times_[i].is_infinite() && now - times_[i] > kAgeMax) return false;
      scratch[count++] = values_[i];
    }
    return true;
  };
  if (take(0, next_)) take(next_, values_.size());
  return {scratch.data(), count};
}

void TailWindow::refresh(TimePoint now) {
  since_refresh_ = 0;
  Values scratch;
  const std::span<const Duration> values = young(now, scratch);
  const auto count = static_cast<uint32_t>(values.size());
  const uint32_t half = count / 2;
  const uint32_t needed = std::max(count / kParts.front(), kTailMin) + 1;

  // The large ones and those near the median, as the last time had it: few, and found without
  // branches.
  Values large;
  Values middle;
  uint32_t large_count = 0;
  uint32_t large_or_equal = 0;
  uint32_t middle_count = 0;
  uint32_t above_middle = 0;
  for (const Duration value : values) {
    large[large_count] = middle[middle_count] = value;
    const bool not_above = value <= middle_most_;
    large_count += value > large_above_ ? 1 : 0;
    large_or_equal += value >= large_above_ ? 1 : 0;
    middle_count += (not_above && value >= middle_least_) ? 1 : 0;
    above_middle += not_above ? 0 : 1;
  }
  const bool middle_found = above_middle <= half && half < above_middle + middle_count;
  if (large_count < needed && large_or_equal >= needed) {
    std::fill(large.begin() + large_count, large.begin() + needed, large_above_);
    large_count = needed;
  }
  if (!middle_found || large_count < needed || large_count > half) return guess_again(scratch, values);
  if (middle_least_ == middle_most_) {
    median_ = middle_most_;
  } else {
    const auto at = middle.begin() + half - above_middle;
    std::nth_element(middle.begin(), at, middle.begin() + middle_count, std::greater<>());
    median_ = *at;
  }
  refresh_tail({large.data(), large_count}, count);
}

// After a guess that was wrong, which costs time and nothing else.
void TailWindow::guess_again(Values& scratch, std::span<const Duration> values) {
  const auto count = static_cast<uint32_t>(values.size());
  const uint32_t half = count / 2;
  const uint32_t needed = std::max(count / kParts.front(), kTailMin) + 1;
  if (values.data() != scratch.data()) std::ranges::copy(values, scratch.begin());
  std::sort(scratch.begin(), scratch.begin() + count, std::greater<>());
  median_ = scratch[half];
  middle_most_ = scratch[half - count / kMiddlePart];
  middle_least_ = scratch[half + count / kMiddlePart];
  large_above_ = scratch[needed + needed / 4 - 1];
  refresh_tail({scratch.data(), needed}, count);
}

void TailWindow::refresh_tail(std::span<Duration> large, uint32_t count) {
  const uint32_t stalls = 1 + count / kStallPart;
  // From the end on, at each of these positions the one that an order would have there: what is
  // between two of them is only summed up.
  auto end = large.end();
  const auto place = [&](uint32_t position) {
    const auto at = large.begin() + position;
    if (at < end) std::nth_element(large.begin(), at, end, std::greater<>());
    end = std::min(at, end);
  };
  for (const uint32_t part : kParts) place(std::max(count / part, kTailMin));
  place(stalls);
  Duration least = Duration::max();
  for (size_t i = 0; i < kParts.size(); ++i) {
    const uint32_t above = std::max(count / kParts[i], kTailMin);
    const Duration threshold = large[above];
    quantiles_[i] = threshold;
    if (kParts[i] < kTailPart) continue;
    Duration excess = (large[stalls] - threshold) * stalls;
    for (uint32_t at = stalls; at < above; ++at) excess += large[at] - threshold;
    const double counted = above - stalls;
    // As much more as the mean of so few is likely to be off.
    const Duration mean = excess.scaled((1 + 1 / std::sqrt(counted)) / counted);
    const double share = static_cast<double>(above) / count;
    const Duration far_out = threshold + mean.scaled(std::log(share / kFarOut));
    if (far_out >= least) continue;
    least = far_out;
    threshold_ = threshold;
    share_above_ = share;
    mean_excess_ = mean;
  }
}

}  // namespace foliot
