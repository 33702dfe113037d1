#include "base/tail_window.h"

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
// Of the values, one of these parts, the largest ones, make the tail: the one that says
// the least. So of two kinds of values, of which the smaller ones are many, only the larger
// ones count. Of those that are a hundredth of all, only that they are no smaller than the
// next is believed.
constexpr std::array<uint32_t, 3> kTailParts{10, 20, 40};
constexpr uint32_t kTailMin = 3;
constexpr uint32_t kStallPart = 100;
constexpr double kFarOut = 1e-3;
// So many of the last values are above recent().
constexpr uint32_t kRecentAbove = 2;

}  // namespace

TailWindow::TailWindow(Duration prior_mean) {
  last_.fill(-Duration::max());
  samples_.reserve(kSize);
  sorted_.reserve(kSize);
  // In an order in which those that are not yet replaced are always of all sizes.
  for (uint32_t i = 0; i < kPriorSize; ++i) {
    const uint32_t rank = i * 37 % kPriorSize;
    const double excess = std::log(kPriorSize / (rank + 0.5));
    samples_.push_back({prior_mean.scaled(excess), TimePoint::infinite_future()});
  }
  refresh(TimePoint());
}

bool TailWindow::record(Duration value, TimePoint now) {
  if (next_ == samples_.size()) {
    samples_.push_back({value, now});
  } else {
    samples_[next_] = {value, now};
  }
  next_ = (next_ + 1) % kSize;
  const bool changed = note_recent(value);
  const auto count = static_cast<uint32_t>(samples_.size());
  const TimePoint first_new = samples_[(next_ + count - ++since_refresh_) % count].at;
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
  if (above_recent_ <= kRecentAbove && below_recent_ < kRecent - kRecentAbove) return false;
  std::array<Duration, kRecent> last = last_;
  std::nth_element(last.begin(), last.begin() + kRecentAbove, last.end(), std::greater<>());
  recent_ = last[kRecentAbove];
  above_recent_ = static_cast<uint32_t>(std::ranges::count_if(last, [&](Duration each) { return each > recent_; }));
  below_recent_ = static_cast<uint32_t>(std::ranges::count_if(last, [&](Duration each) { return each < recent_; }));
  return true;
}

Duration TailWindow::tail(double share) const {
  return threshold_ + mean_excess_.scaled(std::log(share_above_ / share));
}

void TailWindow::refresh(TimePoint now) {
  since_refresh_ = 0;
  sorted_.clear();
  // From the newest on; false at the first that is too old.
  const auto take = [&](uint32_t begin, uint32_t end) {
    for (uint32_t i = end; i-- > begin;) {
      const Sample& sample = samples_[i];
      if (sorted_.size() >= kKeptMin && !sample.at.is_infinite() && now - sample.at > kAgeMax) return false;
      sorted_.push_back(sample.value);
    }
    return true;
  };
  if (take(0, next_)) take(next_, static_cast<uint32_t>(samples_.size()));
  const auto count = static_cast<uint32_t>(sorted_.size());
  const uint32_t stalls = 1 + count / kStallPart;
  // The larger ones first, at each of these positions the one that an order would have
  // there: what is between two of them is only summed up.
  auto end = sorted_.end();
  const auto place = [&](uint32_t position) {
    const auto at = sorted_.begin() + position;
    if (at < end) std::nth_element(sorted_.begin(), at, end, std::greater<>());
    end = std::min(at, end);
  };
  place(count / 2);
  for (const uint32_t part : kTailParts) place(std::max(count / part, kTailMin));
  place(stalls);
  Duration least = Duration::max();
  for (const uint32_t part : kTailParts) {
    const uint32_t above = std::max(count / part, kTailMin);
    const Duration threshold = sorted_[above];
    Duration excess = (sorted_[stalls] - threshold) * stalls;
    for (uint32_t i = stalls; i < above; ++i) excess += sorted_[i] - threshold;
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
  median_ = sorted_[count / 2];
}

}  // namespace foliot
