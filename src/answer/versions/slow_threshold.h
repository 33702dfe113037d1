// SlowThreshold: from which latency on a request counts as slow beside those of a stable version: kFactor times their
// p99, which is followed as they come.
//
// Threading: one owner.
#ifndef FOLIOT_ANSWER_VERSIONS_SLOW_THRESHOLD_H_
#define FOLIOT_ANSWER_VERSIONS_SLOW_THRESHOLD_H_

#include <cmath>
#include <cstddef>
#include <utility>

#include "foundation/base/time.h"

namespace foliot {

class SlowThreshold {
 public:
  // A latency of the stable version.
  void add(Duration latency) {
    const double seconds = latency.to_seconds();
    if (count_ < kFirst) {
      ++count_;
      if (seconds > largest_)
        second_ = std::exchange(largest_, seconds);
      else if (seconds > second_)
        second_ = seconds;
      p99_ = second_;
      return;
    }
    // Stochastic approximation: at the p99, steps up and down cancel out.
    p99_ *= std::exp(seconds > p99_ ? kStep * 0.99 : -kStep * 0.01);
  }
  // Whether it is known by now.
  bool is_known() const { return count_ == kFirst && p99_ > 0; }
  // REQUIRES: is_known().
  bool is_slow(Duration latency) const { return latency.to_seconds() > kFactor * p99_; }

 private:
  static constexpr size_t kFirst = 200;  // of which the second largest is near the p99
  static constexpr double kStep = 0.05;
  // Less than twice, so that a p99 twice as long is found where nothing else is slower.
  static constexpr double kFactor = 1.25;

  size_t count_ = 0;
  double largest_ = 0;  // in seconds
  double second_ = 0;
  double p99_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_VERSIONS_SLOW_THRESHOLD_H_
