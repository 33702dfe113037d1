// ArrivalRate: how many requests per second a model gets, from counters that
// forget over 2, 15 and 120 s, each trusted by how well it has foretold the last
// gaps between arrivals (their likelihood under a Poisson process of that rate).
#ifndef FOLIOT_SCHED_FOLIOT_ARRIVAL_RATE_H_
#define FOLIOT_SCHED_FOLIOT_ARRIVAL_RATE_H_

#include <array>

#include "base/time.h"

namespace foliot::foliot_policy {

class ArrivalRate {
 public:
  void record(TimePoint arrival);
  // Requests per second, as expected at `now`.
  double at(TimePoint now) const;
  // No more than at(now), and near it if that was asked for lately or requests are
  // frequent; at a fraction of the cost. Until the next arrival a rate only falls.
  double at_least(TimePoint now) const;
  bool seen() const { return last_ != kNever; }

 private:
  static constexpr std::array<double, 3> kMemorySeconds{2, 15, 120};
  static constexpr TimePoint kNever = TimePoint::infinite_future();

  std::array<double, 3> level_{};       // per second, at last_
  std::array<double, 3> likelihood_{};  // logarithm, recent gaps weighing most
  TimePoint last_ = kNever;
  // What at() last said, since the last arrival.
  mutable double known_ = 0;
  mutable TimePoint known_at_;
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_SCHED_FOLIOT_ARRIVAL_RATE_H_
