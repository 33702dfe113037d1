// RateComparison: whether one version of a model fails more often than another, by a test that may be looked at after
// every request.
//
// Both versions get requests by a split that knows nothing of them. Were they equally good, each failure would be the
// canary's with the probability of its share. The test bets against that: its evidence is multiplied by the ratio of
// the two likelihoods of whose failure it is, and of a partial failure, a loss in [0, 1], by a part of that. Where the
// canary fails at most `tolerated` times as often, the evidence is a nonnegative supermartingale that begins at 1, so
// it ever reaches 1/a with a probability of at most a (Ville's inequality; e-processes by betting as in Waudby-Smith
// and Ramdas, "Estimating means of bounded random variables by betting", 2024). How much more often it fails is not
// known: the evidence is the mean over several ratios (the method of mixtures, Robbins 1970).
//
// Rejected: a confidence interval for each of the two rates, which has to learn both, and takes several times as many
// requests where failures are rare.
//
// Threading: one owner.
#ifndef FOLIOT_ANSWER_VERSIONS_RATE_COMPARISON_H_
#define FOLIOT_ANSWER_VERSIONS_RATE_COMPARISON_H_

#include <array>
#include <cstdint>

namespace foliot {

class RateComparison {
 public:
  struct Count {
    uint64_t requests = 0;
    double failures = 0;

    double rate() const { return requests == 0 ? 0 : failures / static_cast<double>(requests); }
  };

  // `share`: the canary's part of the requests of both, in (0, 1). `tolerated`: at least 1.
  explicit RateComparison(double share, double tolerated = 1) : share_(share), tolerated_(tolerated) {}

  // `loss`: 0 for a success, 1 for a failure; what lies outside counts as the nearer of them.
  void add(bool is_canary, double loss);
  double evidence() const { return evidence_; }
  const Count& canary() const { return canary_; }
  const Count& stable() const { return stable_; }

 private:
  static constexpr std::array<double, 6> kRatios{1.5, 2, 4, 8, 16, 64};  // to `tolerated`

  double share() const;

  const double share_;
  const double tolerated_;
  Count canary_;
  Count stable_;
  std::array<double, kRatios.size()> logs_{};  // of the evidence for each ratio
  double evidence_ = 1;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_VERSIONS_RATE_COMPARISON_H_
