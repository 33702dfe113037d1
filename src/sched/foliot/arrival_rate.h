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
  bool seen() const { return seen_; }

 private:
  static constexpr std::array<double, 3> kMemorySeconds{2, 15, 120};

  std::array<double, 3> level_{};       // per second, at last_
  std::array<double, 3> likelihood_{};  // logarithm, recent gaps weighing most
  TimePoint last_;
  bool seen_ = false;
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_SCHED_FOLIOT_ARRIVAL_RATE_H_
