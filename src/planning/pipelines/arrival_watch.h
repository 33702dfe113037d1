// ArrivalWatch: whether the arrivals of the moment are those that a plan was made for.
//
// The envelope of a plan's trace is the most that came in its windows by chance, and the next arrivals of the same
// process exceed it now and then. So more counts only from kDeviations standard deviations beyond the envelope
// on, and less only from kDeviationsBelow below the mean. The variance of a window's arrivals is their mean times an
// index of dispersion, which the envelope shows: the most of many windows is some 3.7 deviations above the mean.
//
// Threading: one owner. Time is an argument.
#ifndef FOLIOT_PLANNING_PIPELINES_ARRIVAL_WATCH_H_
#define FOLIOT_PLANNING_PIPELINES_ARRIVAL_WATCH_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "foundation/base/time.h"
#include "planning/pipelines/envelope.h"

namespace foliot {

class ArrivalWatch {
 public:
  // As planned again, so long after the last surge.
  static constexpr Duration kCalm = Duration::seconds(30);

  // `rate`: of the plan, per second.
  ArrivalWatch(const Envelope& planned, double rate, size_t arrivals_most);

  // Queries per second, of the window that has most of them.
  struct Surge {
    double certain = 0;  // less kDeviations
    double likely = 0;   // less one
  };
  // REQUIRES: `now` never falls. nullopt: no window has more than planned.
  std::optional<Surge> arrive(TimePoint now);
  // `counted` arrivals came in the last `window`.
  bool as_planned(TimePoint now, double counted, Duration window) const;

 private:
  static constexpr double kDeviations = 2;
  static constexpr double kDeviationsBelow = 4;

  const double rate_;
  double dispersion_ = 1;
  std::vector<double> threshold_;  // by windows
  SlidingWindows windows_;
  bool surged_ = false;
  TimePoint last_surge_;
};

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_ARRIVAL_WATCH_H_
