// ArrivalRate: the expected requests per second of a model, from counters that forget
// over 2, 15 and 120 s, each trusted by how well it has predicted the last gaps between
// arrivals (their likelihood under a Poisson process of that rate).
//
// Requests may also stop: after a silence that is long for the rate that was, the
// model is more likely to be idle, and less is expected of it. The shorter counters
// stand still while it is idle, so that it has the rate that it had once it is asked
// again: neither the silence nor the arrival that ends it counts. So models in use are
// distinguished from idle ones within a few of their mean gaps. Silences that come again
// after few arrivals each are no idleness but a lower rate, and the counters follow it.
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_ARRIVAL_RATE_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_ARRIVAL_RATE_H_

#include <array>

#include "foundation/base/time.h"

namespace foliot::foliot_policy {

class ArrivalRate {
 public:
  void record(TimePoint arrival);
  // Requests per second, as expected at `now`.
  double at(TimePoint now) const;
  // No more than at(now), and near it if that was asked for lately or requests are
  // frequent; at a fraction of the cost. Until the next arrival a rate only falls.
  double at_least(TimePoint now) const;
  // REQUIRES: seen().
  TimePoint last() const { return last_; }
  bool seen() const { return last_ != kNever; }

 private:
  static constexpr std::array<double, 3> kMemorySeconds{2, 15, 120};
  static constexpr TimePoint kNever = TimePoint::infinite_future();

  // Returns how far the shorter counters stand still in the gap that ends now; 0: not at all, 1: wholly.
  double stands(double gap);
  // The chance that it is not idle after a silence of so many seconds since last_.
  double in_use(double silence) const;
  // No more than that, and cheaper.
  double in_use_at_least(double silence) const;
  // The rate at last_ that has foretold the last gaps best.
  double likeliest_level() const;

  std::array<double, 3> level_{};      // per second, at last_
  std::array<float, 3> likelihood_{};  // logarithm, recent gaps weighing most
  float silences_ = 0;                 // how many of the last gaps were idleness, as a share
  TimePoint last_ = kNever;
  // What at() last said, since the last arrival.
  mutable double known_ = 0;
  mutable TimePoint known_at_;
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_ARRIVAL_RATE_H_
