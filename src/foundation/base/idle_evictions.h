// IdleEvictions: which connection a new one evicts where connections_max are open: the one
// that has been idle longest. It is not determined for each new connection but at most
// once per `interval`, so that a flood of them costs no more than refusing it; until then
// at most `candidates_max` of those found are evicted.
//
// Time is an argument. Threading: not thread-safe; one owner.
#ifndef FOLIOT_FOUNDATION_BASE_IDLE_EVICTIONS_H_
#define FOLIOT_FOUNDATION_BASE_IDLE_EVICTIONS_H_

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "foundation/base/time.h"

namespace foliot {

template <typename Connection>
class IdleEvictions {
 public:
  // A connection that may be evicted, and since when it is idle.
  using Idle = std::pair<TimePoint, Connection>;

  IdleEvictions(Duration interval, size_t candidates_max) : interval_(interval), candidates_max_(candidates_max) {}

  // True, once each interval: set_candidates() is to be called before evict().
  bool due(TimePoint now) {
    if (now < next_) return false;
    next_ = now + interval_;
    return true;
  }
  // All that may be evicted now, in any order.
  void set_candidates(std::vector<Idle> idle) {
    const size_t count = std::min(idle.size(), candidates_max_);
    std::partial_sort(idle.begin(), idle.begin() + static_cast<std::ptrdiff_t>(count), idle.end(), longest_first);
    idle.resize(count);
    candidates_.clear();
    for (size_t i = count; i > 0; --i) candidates_.push_back(std::move(idle[i - 1].second));
  }
  // Calls end(connection) for one candidate after the other, the one idle longest first,
  // until it returns true: it may be in use by now, or gone. False: there are no more.
  template <typename End>
  bool evict(const End& end) {
    while (!candidates_.empty()) {
      const Connection connection = std::move(candidates_.back());
      candidates_.pop_back();
      if (end(connection)) return true;
    }
    return false;
  }

 private:
  static bool longest_first(const Idle& a, const Idle& b) { return a.first < b.first; }

  Duration interval_;
  size_t candidates_max_;
  std::vector<Connection> candidates_;  // the one idle longest is last
  TimePoint next_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_IDLE_EVICTIONS_H_
