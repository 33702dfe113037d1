// PooledPrior: what all users have in common, by one version: the weights m that predict the observations of the
// sampled users (population.h) best, as if they were one user:
//
//   m = (sum of s F'F + kOwnShare I)^-1 sum of s F'y,  s = 1 / (lambda + trace F'F), over users
//
// s is what makes it the mean of the users' weights, each with the information that its observations have: with one
// feature it is the generalised least squares estimate of the mean of weights with variance 1 / lambda. It does not
// depend on what the users' weights are. The trace of s F'F is below 1, and values outside of the range that the
// population has learned do not count: so no user moves m by more than its share, whatever it observed and how often.
// kOwnShare I draws m to zero where there are hardly any users.
//
// Cost: d^2 for each observation of a sampled user that came or left the sample, and d^3 / 3 after such a change. Where
// values have left that were larger than others by kCancelling, d^2 for each observation of the sample.
//
// Threading: not thread-safe.
#ifndef FOLIOT_ANSWER_PERSONAL_STORAGE_POOLED_PRIOR_H_
#define FOLIOT_ANSWER_PERSONAL_STORAGE_POOLED_PRIOR_H_

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "answer/personal/items/item_features.h"
#include "answer/personal/weights/population.h"
#include "answer/personal/weights/value_range.h"

namespace foliot {

class PooledPrior {
 public:
  static constexpr double kOwnShare = 0.1;
  // A sum that had a value so many times as large as others has lost digits of theirs when that is taken out.
  static constexpr double kCancelling = 1 << 20;

  // `items` outlive it.
  PooledPrior(const ItemFeatures& items, float lambda);

  // Brings it up to date. Values outside of `range` do not count.
  void refresh(const Population& population, const ValueRange& range);
  // width() entries, as of the last refresh.
  std::span<const float> weights() const { return weights_; }

 private:
  // What the sums have of a user.
  struct Part {
    uint64_t revision = 0;
    ValueRange values{};  // from the least to the greatest
    double squares = 0;   // trace F'F
    std::vector<uint64_t> item_ids{};
    std::vector<float> item_values{};
  };

  // Sets `rows_` and `values_` to what counts of the user; returns the trace.
  double gather(const Part& part, const ValueRange& range);
  // Adds what was gathered to the sums, or takes it from them.
  void add(double squares, double sign);
  void rebuild(const Population& population, const ValueRange& range);
  void solve();

  const ItemFeatures& items_;
  const double lambda_;
  ValueRange range_ = ValueRange::all();
  std::map<uint64_t, Part> parts_;
  std::vector<double> matrix_;  // sum of s F'F, as a factor is packed
  std::vector<double> sums_;    // sum of s F'y
  std::vector<float> weights_;
  double summed_ = 0;  // magnitude of the largest value since all was summed anew
  // Used again by each call.
  std::vector<double> rows_;
  std::vector<double> values_;
  std::vector<double> product_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_STORAGE_POOLED_PRIOR_H_
