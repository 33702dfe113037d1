// Histogram: counts of durations in logarithmic buckets, so that p50 to p99.99
// can be read with a relative error below 1 % in fixed memory (about 30 kB).
//
// Threading: not thread-safe; one per owner, merged when read.
#ifndef FOLIOT_FOUNDATION_BASE_HISTOGRAM_H_
#define FOLIOT_FOUNDATION_BASE_HISTOGRAM_H_

#include <cstdint>
#include <vector>

#include "foundation/base/time.h"

namespace foliot {

class Histogram {
 public:
  Histogram();

  // Negative durations count as zero.
  void record(Duration value);
  void merge(const Histogram& other);

  uint64_t count() const { return count_; }
  Duration min() const;
  Duration max() const;
  Duration mean() const;
  // The smallest recorded value v (up to bucket width) so that a share of at
  // least `quantile` in [0, 1] is <= v; zero if nothing was recorded.
  Duration quantile(double quantile) const;

 private:
  std::vector<uint64_t> buckets_;
  uint64_t count_ = 0;
  double sum_nanoseconds_ = 0;
  Duration min_ = Duration::max();
  Duration max_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_HISTOGRAM_H_
