// TimeParts: an interval of which causes take their parts, so that no instant counts for two of them.
#ifndef FOLIOT_OBSERVE_REQUEST_LOG_TIME_PARTS_H_
#define FOLIOT_OBSERVE_REQUEST_LOG_TIME_PARTS_H_

#include <algorithm>
#include <vector>

#include "foundation/base/time.h"

namespace foliot {

class TimeParts {
 public:
  TimeParts(TimePoint begin, TimePoint end) {
    if (begin < end) free_.push_back({begin, end});
  }

  // What no part has taken yet of the time between these.
  Duration take(TimePoint begin, TimePoint end) {
    Duration taken;
    std::vector<Interval> left;
    for (const Interval& free : free_) {
      const Interval both{std::max(begin, free.begin), std::min(end, free.end)};
      if (both.begin >= both.end) {
        left.push_back(free);
        continue;
      }
      taken += both.end - both.begin;
      if (free.begin < both.begin) left.push_back({free.begin, both.begin});
      if (both.end < free.end) left.push_back({both.end, free.end});
    }
    free_ = std::move(left);
    return taken;
  }
  // So much of what is left, the earliest first.
  Duration take_earliest(Duration most) {
    Duration taken;
    while (!free_.empty() && taken < most) {
      const TimePoint begin = free_.front().begin;
      taken += take(begin, std::min(free_.front().end, begin + (most - taken)));
    }
    return taken;
  }
  Duration left() const {
    Duration sum;
    for (const Interval& free : free_) sum += free.end - free.begin;
    return sum;
  }

 private:
  struct Interval {
    TimePoint begin;
    TimePoint end;
  };
  std::vector<Interval> free_;  // ascending
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_REQUEST_LOG_TIME_PARTS_H_
