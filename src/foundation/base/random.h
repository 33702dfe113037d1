// Random: a seeded source of randomness, passed to the code that needs it. The
// distributions are written out, so that a seed gives the same numbers with every
// compiler and standard library.
//
// Threading: not thread-safe; one per owner.
#ifndef FOLIOT_FOUNDATION_BASE_RANDOM_H_
#define FOLIOT_FOUNDATION_BASE_RANDOM_H_

#include <cstdint>

namespace foliot {

class Random {
 public:
  explicit Random(uint64_t seed);

  uint64_t next();
  // In [0, 1).
  double uniform();
  // In [0, bound). REQUIRES: bound > 0.
  uint64_t below(uint64_t bound);
  // Mean 1.
  double exponential();
  // Mean 0, standard deviation 1.
  double normal();
  // Mean 1 and the given coefficient of variation (> 0): inter-arrival times
  // from regular (< 1) over Poisson (1) to bursty (> 1).
  double gamma_with_variation(double coefficient_of_variation);
  // A generator of its own for a part, so that parts do not disturb each other.
  Random fork();

 private:
  double gamma(double shape);
  uint64_t state_[4];
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_RANDOM_H_
