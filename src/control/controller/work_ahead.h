// WorkAhead: the work that is still to be done before what has a given deadline, were the most
// urgent always done first: what the runs of pipelines that are under way need of devices of
// each kind.
//
// Deadlines are rounded to milliseconds. Each change costs a search, a question about what is
// not the last one as many steps as there are milliseconds between deadlines.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_CONTROL_CONTROLLER_WORK_AHEAD_H_
#define FOLIOT_CONTROL_CONTROLLER_WORK_AHEAD_H_

#include <cstdint>
#include <map>
#include <vector>

#include "foundation/base/time.h"
#include "foundation/core/ids.h"

namespace foliot {

class WorkAhead {
 public:
  void add(KindId kind, TimePoint deadline, Duration work) { change(kind, deadline, work); }
  // REQUIRES: it was added.
  void remove(KindId kind, TimePoint deadline, Duration work) { change(kind, deadline, Duration() - work); }
  // Of what has this deadline or an earlier one.
  Duration before(KindId kind, TimePoint deadline) const {
    if (kind.value() >= kinds_.size()) return Duration();
    const Work& work = kinds_[kind.value()];
    if (work.by_deadline.empty() || place_of(deadline) >= work.by_deadline.rbegin()->first) return work.all;
    Duration sum;
    for (const auto& [place, amount] : work.by_deadline) {
      if (place > place_of(deadline)) break;
      sum += amount;
    }
    return sum;
  }

 private:
  struct Work {
    std::map<int64_t, Duration> by_deadline;
    Duration all;
  };
  static int64_t place_of(TimePoint deadline) { return deadline.nanoseconds() / 1'000'000; }
  void change(KindId kind, TimePoint deadline, Duration by) {
    if (kind.value() >= kinds_.size()) kinds_.resize(kind.value() + 1);
    Work& work = kinds_[kind.value()];
    work.all += by;
    const auto at = work.by_deadline.try_emplace(place_of(deadline)).first;
    at->second += by;
    if (at->second == Duration()) work.by_deadline.erase(at);
  }

  std::vector<Work> kinds_;  // by KindId
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_WORK_AHEAD_H_
