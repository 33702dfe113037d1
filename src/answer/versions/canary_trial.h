// CanaryTrial: the comparison of a canary with the stable version of its model while a split gives requests to both:
// by errors, by deadlines that were missed, by slow answers and, where clients say it, by loss. Each is a
// RateComparison.
//
// Equal versions end a trial with a probability of at most kErrorProbability, however long it lasts. A client with a
// key always asks the same version, so what it does wrong, or has slow, counts once.
//
// Threading: one owner.
#ifndef FOLIOT_ANSWER_VERSIONS_CANARY_TRIAL_H_
#define FOLIOT_ANSWER_VERSIONS_CANARY_TRIAL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "answer/versions/rate_comparison.h"
#include "answer/versions/slow_threshold.h"
#include "foundation/base/time.h"

namespace foliot {

// How one request ended.
struct VersionOutcome {
  enum class End : uint8_t {
    kServed,
    kFailed,  // the model, or the call of it
    kMissed,  // refused, or late
    kOther,   // says nothing of the version, such as that the client went away
  };
  End end = End::kOther;
  Duration latency{};
  uint64_t client = 0;  // whose key always gets the same version; 0: there is no key
};

class CanaryTrial {
 public:
  static constexpr double kErrorProbability = 0.05;
  // Of slow answers: where a version has fewer requests, batches and what is in memory differ a little.
  static constexpr double kSlowTolerated = 1.25;
  static constexpr std::array<std::string_view, 4> kNames{"errors", "missed deadlines", "slow answers", "loss"};

  // `share`: the canary's part of the requests of both.
  explicit CanaryTrial(double share)
      : tests_{RateComparison(share), RateComparison(share), RateComparison(share, kSlowTolerated),
               RateComparison(share)} {}

  void add(bool is_canary, const VersionOutcome& outcome);
  void add_loss(bool is_canary, double loss) { tests_[3].add(is_canary, loss); }
  // Why the canary is worse, as "errors: 9 of 412 (2.18 %), and 0 of 7828 (0.00 %) of the stable version; evidence 143,
  // limit 80"; empty: it is not known to be.
  std::string verdict() const;
  // In the order of kNames.
  const std::array<RateComparison, kNames.size()>& tests() const { return tests_; }

 private:
  // The failures of one test that are of clients with a key.
  class Clients {
   public:
    // False: this client's is there already, or there is no room.
    bool add(uint64_t client) { return client == 0 || (seen_.size() < kClientsMax && seen_.insert(client).second); }

   private:
    static constexpr size_t kClientsMax = 4096;
    std::unordered_set<uint64_t> seen_;
  };

  std::array<RateComparison, kNames.size()> tests_;
  SlowThreshold slow_;
  Clients failed_;
  Clients slowed_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_VERSIONS_CANARY_TRIAL_H_
