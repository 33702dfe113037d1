// UserWeights: the weights of one user, by ridge regression towards a prior, kept up to date as
// observations come (Velox, 2.2):
//
//   A = F'F + lambda I,  b = F'y,  w = A^-1 (b + lambda prior)
//
// A is kept as its Cholesky factor, and b, in double: so weights are the same whether observations came one by one or
// all at once, as after a restart. Exploration needs the factor, too: w + v L'^-1 e with e from N(0, I) is a draw from
// N(w, v^2 A^-1).
//
// Rotations are stable, but errors add up: is_due() after kUpdatesBetweenChecks updates, when the owner
// builds it anew (it has the observations).
//
// Threading: not thread-safe.
#ifndef FOLIOT_ANSWER_PERSONAL_WEIGHTS_USER_WEIGHTS_H_
#define FOLIOT_ANSWER_PERSONAL_WEIGHTS_USER_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foundation/base/random.h"

namespace foliot {

constexpr size_t kFeaturesMax = 1000;

class UserWeights {
 public:
  static constexpr uint32_t kUpdatesBetweenChecks = 1000;

  // Of no observation. `features` of 1 to kFeaturesMax; lambda > 0.
  UserWeights(size_t features, float lambda);

  // Observations in rows of padded_rows(features) entries, and their values, as one update. False: a
  // pivot is not positive; build() it anew.
  bool add(std::span<const float> rows, std::span<const float> values);
  // Of these observations and no others. False: even that has no positive pivots.
  bool build(std::span<const float> rows, std::span<const float> values);

  // Writes w. `prior` and `weights` have padded_rows(features) entries.
  void solve(std::span<const float> prior, std::span<float> weights) const;
  // A draw from N(weights, deviation^2 A^-1).
  void draw(std::span<const float> weights, float deviation, Random& random, std::span<float> drawn) const;
  // sqrt(f' A^-1 f) of the features of as many items as `uncertainties` has, each in one of `rows`.
  void uncertainties(std::span<const float* const> rows, std::span<float> uncertainties) const;

  bool is_due() const { return updates_ >= kUpdatesBetweenChecks; }
  size_t bytes() const { return (factor_.size() + sums_.size()) * sizeof(double); }

 private:
  void add_sums(std::span<const float> rows, std::span<const float> values);

  size_t features_;
  float lambda_;
  uint32_t updates_ = 0;  // since it was built
  std::vector<double> factor_;
  std::vector<double> sums_;  // b
};

// The same weights from scratch, in double: what UserWeights is compared with.
void solve_in_double(size_t features, float lambda, std::span<const float> rows, std::span<const float> values,
                     std::span<const float> prior, std::span<float> weights);
// |a - b| / |b|.
double relative_difference(std::span<const float> a, std::span<const float> b);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_WEIGHTS_USER_WEIGHTS_H_
