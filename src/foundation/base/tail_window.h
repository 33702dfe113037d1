// TailWindow: a stream's last values, and how large its next ones may be.
//
// A quantile far out, such as one in 10,000, is beyond what a window of some hundred
// values has seen. It is extrapolated: what exceeds the largest tenth, or a smaller part
// of them, is taken to be exponentially distributed, with the mean of those excesses. Of
// the largest hundredth, only that they are no smaller than the next is believed: a stall
// that comes once does not stay in the estimate for as long as it is in the window. What
// does stay is in recent() at once.
//
// A window begins with values of a prior, which the first ones replace one by one, and
// forgets what is older than 20 s as long as it keeps 32.
//
// Constant cost for each value on average, and no allocation after the constructor.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_FOUNDATION_BASE_TAIL_WINDOW_H_
#define FOLIOT_FOUNDATION_BASE_TAIL_WINDOW_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "foundation/base/time.h"

namespace foliot {

class TailWindow {
 public:
  static constexpr uint32_t kSize = 1024;
  static constexpr uint32_t kPriorSize = 64;
  static constexpr uint32_t kRecent = 16;
  static constexpr uint32_t kRecentAbove = 2;

  // The prior is exponential with this mean.
  explicit TailWindow(Duration prior_mean);

  // True when tail() or recent() may have changed. A `now` that goes back a little only blurs
  // which values are too old.
  bool record(Duration value, TimePoint now);
  // Exceeded by this share of the values; `share` is below a tenth.
  Duration tail(double share) const;
  // One of so many values is above a measured quantile.
  static constexpr std::array<uint32_t, 6> kParts{3, 4, 6, 10, 20, 40};
  // By kParts; not extrapolated.
  std::span<const Duration, kParts.size()> quantiles() const { return quantiles_; }
  // Exceeded by half of the values.
  Duration median() const { return median_; }
  // Exceeded by kRecentAbove of the last kRecent values.
  Duration recent() const { return recent_; }
  // From now on by so many, fewer than kRecent.
  void set_recent_above(uint32_t count);

 private:
  using Values = std::array<Duration, kSize>;
  bool note_recent(Duration value);
  void find_recent();
  // Those that count; in `scratch` if those are not all.
  std::span<const Duration> young(TimePoint now, Values& scratch) const;
  void refresh(TimePoint now);
  void guess_again(Values& scratch, std::span<const Duration> values);
  // Of `count` values, of which `large` holds the largest: a third of them or more.
  void refresh_tail(std::span<Duration> large, uint32_t count);

  std::vector<Duration> values_;  // a ring
  std::vector<TimePoint> times_;  // of values_
  uint32_t next_ = 0;
  uint32_t since_refresh_ = 0;
  std::array<Duration, kRecent> last_{};
  uint32_t next_last_ = 0;
  uint32_t recent_rank_ = kRecentAbove;  // so many of last_ are above recent_
  Duration recent_ = -Duration::max();
  uint32_t above_recent_ = 0;  // of last_
  uint32_t below_recent_ = 0;
  // What exceeds `threshold_`, this share of all, has this mean excess.
  Duration threshold_;
  double share_above_ = 1;
  Duration mean_excess_;
  std::array<Duration, kParts.size()> quantiles_{};
  Duration median_;
  // Guesses for the next refresh(): above this are about five twelfths of all, between these are those
  // near the median.
  Duration large_above_;
  Duration middle_least_;
  Duration middle_most_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_TAIL_WINDOW_H_
