// Popularity: the distribution of requests over models, uniform or after Zipf.
#ifndef FOLIOT_LOAD_WORKLOAD_POPULARITY_H_
#define FOLIOT_LOAD_WORKLOAD_POPULARITY_H_

#include <cstdint>
#include <vector>

#include "foundation/base/random.h"

namespace foliot {

// Threading: immutable; any thread.
class Popularity {
 public:
  // Model i of `count` is drawn in proportion to 1 / (i + 1)^exponent; 0 is
  // uniform. REQUIRES: count > 0, exponent >= 0.
  Popularity(uint32_t count, double exponent);

  // In [0, count).
  uint32_t draw(Random& random) const;

 private:
  std::vector<double> cumulative_;
};

}  // namespace foliot

#endif  // FOLIOT_LOAD_WORKLOAD_POPULARITY_H_
