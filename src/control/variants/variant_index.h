// VariantIndex: the variants of a task by accuracy, latency and cost, for queries of the kind
// "the cheapest with at least this accuracy, within this latency".
//
// A binary tree over the variants in order of accuracy. Each node has the least latency, the
// least instant and the least cost below it, and a search leaves out what cannot hold a better
// one. It changes on events (set, clear: logarithmic), never on queries. A query is logarithmic
// where the three agree, as they do along a Pareto front; at worst, where each subtree has its
// latency from one variant and its cost from another, it visits them all.
//
// Rejected: trees of sorted lists, which bound that, but whose changes are linear; one list by
// cost, read until something matches, whose queries are linear where little matches.
//
// Threading: one owner. No allocation but in reset().
#ifndef FOLIOT_CONTROL_VARIANTS_VARIANT_INDEX_H_
#define FOLIOT_CONTROL_VARIANTS_VARIANT_INDEX_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "foundation/base/time.h"

namespace foliot {

class VariantIndex {
 public:
  static constexpr int64_t kNoCostLimit = std::numeric_limits<int64_t>::max() - 1;
  static constexpr TimePoint kAlways = TimePoint::from_nanoseconds(std::numeric_limits<int64_t>::min());

  struct Entry {
    Duration latency = Duration::max();
    TimePoint ready = TimePoint::infinite_future();  // instant; kAlways where that is not asked for
    int64_t cost = std::numeric_limits<int64_t>::max();
    bool operator==(const Entry&) const = default;
  };
  struct Query {
    double accuracy_least = 0;
    Duration latency_most = Duration::max();
    TimePoint ready_most = TimePoint::infinite_future();
    int64_t cost_most = kNoCostLimit;
  };

  // Positions are those in `accuracies`. All entries are absent. REQUIRES: ascending.
  void reset(std::vector<double> accuracies);
  size_t size() const { return accuracies_.size(); }
  // REQUIRES: position < size(); cost <= kNoCostLimit.
  void set(uint32_t position, const Entry& entry);
  void clear(uint32_t position);
  bool has(uint32_t position) const { return nodes_[leaves_ + position].cost <= kNoCostLimit; }

  // Positions of those present that match. Which of equals is the same in every run.
  std::optional<uint32_t> cheapest(const Query& query) const;
  std::optional<uint32_t> least_accurate(const Query& query) const;
  std::optional<uint32_t> most_accurate(const Query& query) const;
  // The one whose relative lack of accuracy and relative excess of latency add up to least.
  // REQUIRES: latency > 0.
  std::optional<uint32_t> nearest(double accuracy, Duration latency) const;

 private:
  static bool matches(const Entry& entry, const Query& query) {
    return entry.latency <= query.latency_most && entry.ready <= query.ready_most && entry.cost <= query.cost_most;
  }
  uint32_t first_at_least(double accuracy) const;
  uint32_t find_first(uint32_t node, uint32_t begin, uint32_t width, uint32_t from, const Query& query) const;
  uint32_t find_last(uint32_t node, uint32_t begin, uint32_t width, uint32_t from, const Query& query) const;
  void find_cheapest(uint32_t node, uint32_t begin, uint32_t width, uint32_t from, const Query& query, uint32_t& best,
                     int64_t& best_cost) const;
  void find_nearest(uint32_t node, uint32_t begin, uint32_t width, double accuracy, Duration latency, uint32_t& best,
                    double& best_distance) const;

  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  std::vector<double> accuracies_;
  uint32_t leaves_ = 0;       // a power of two
  std::vector<Entry> nodes_;  // [1] is the root, [leaves_ + i] the leaf of position i
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_VARIANTS_VARIANT_INDEX_H_
