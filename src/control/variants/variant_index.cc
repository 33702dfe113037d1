#include "control/variants/variant_index.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

VariantIndex::Entry least_of(const VariantIndex::Entry& a, const VariantIndex::Entry& b) {
  return {std::min(a.latency, b.latency), std::min(a.ready, b.ready), std::min(a.cost, b.cost)};
}

double distance(double has_accuracy, Duration has_latency, double accuracy, Duration latency) {
  const double lack = accuracy > has_accuracy ? (accuracy - has_accuracy) / accuracy : 0;
  const double excess = has_latency > latency ? (has_latency - latency).to_seconds() / latency.to_seconds() : 0;
  return lack + excess;
}

}  // namespace

void VariantIndex::reset(std::vector<double> accuracies) {
  FOLIOT_CHECK(std::ranges::is_sorted(accuracies));
  accuracies_ = std::move(accuracies);
  leaves_ = std::bit_ceil(std::max<uint32_t>(1, static_cast<uint32_t>(accuracies_.size())));
  nodes_.assign(2 * leaves_, Entry());
}

void VariantIndex::set(uint32_t position, const Entry& entry) {
  FOLIOT_CHECK(position < size());
  uint32_t node = leaves_ + position;
  Entry least = entry;
  // Nothing above a node that stays as it is changes.
  while (nodes_[node] != least) {
    nodes_[node] = least;
    if (node == 1) return;
    node /= 2;
    least = least_of(nodes_[2 * node], nodes_[2 * node + 1]);
  }
}

void VariantIndex::clear(uint32_t position) {
  if (has(position)) set(position, Entry());
}

uint32_t VariantIndex::first_at_least(double accuracy) const {
  return static_cast<uint32_t>(std::ranges::lower_bound(accuracies_, accuracy) - accuracies_.begin());
}

std::optional<uint32_t> VariantIndex::cheapest(const Query& query) const {
  uint32_t best = kNone;
  int64_t best_cost = query.cost_most == kNoCostLimit ? kNoCostLimit : query.cost_most + 1;
  if (size() > 0) find_cheapest(1, 0, leaves_, first_at_least(query.accuracy_least), query, best, best_cost);
  return best == kNone ? std::nullopt : std::optional(best);
}

// Finds what costs less than `best_cost`: the half with the less cost first.
void VariantIndex::find_cheapest(uint32_t node, uint32_t begin, uint32_t width, uint32_t from, const Query& query,
                                 uint32_t& best, int64_t& best_cost) const {
  if (begin + width <= from || nodes_[node].cost >= best_cost || !matches(nodes_[node], query)) return;
  if (width == 1) {
    best = begin;
    best_cost = nodes_[node].cost;
    return;
  }
  const uint32_t half = width / 2;
  if (nodes_[2 * node].cost <= nodes_[2 * node + 1].cost) {
    find_cheapest(2 * node, begin, half, from, query, best, best_cost);
    find_cheapest(2 * node + 1, begin + half, half, from, query, best, best_cost);
  } else {
    find_cheapest(2 * node + 1, begin + half, half, from, query, best, best_cost);
    find_cheapest(2 * node, begin, half, from, query, best, best_cost);
  }
}

std::optional<uint32_t> VariantIndex::least_accurate(const Query& query) const {
  const uint32_t found = size() == 0 ? kNone : find_first(1, 0, leaves_, first_at_least(query.accuracy_least), query);
  return found == kNone ? std::nullopt : std::optional(found);
}

uint32_t VariantIndex::find_first(uint32_t node, uint32_t begin, uint32_t width, uint32_t from,
                                  const Query& query) const {
  if (begin + width <= from || !matches(nodes_[node], query)) return kNone;
  if (width == 1) return begin;
  const uint32_t found = find_first(2 * node, begin, width / 2, from, query);
  return found != kNone ? found : find_first(2 * node + 1, begin + width / 2, width / 2, from, query);
}

std::optional<uint32_t> VariantIndex::most_accurate(const Query& query) const {
  const uint32_t found = size() == 0 ? kNone : find_last(1, 0, leaves_, first_at_least(query.accuracy_least), query);
  return found == kNone ? std::nullopt : std::optional(found);
}

uint32_t VariantIndex::find_last(uint32_t node, uint32_t begin, uint32_t width, uint32_t from,
                                 const Query& query) const {
  if (begin + width <= from || !matches(nodes_[node], query)) return kNone;
  if (width == 1) return begin;
  const uint32_t found = find_last(2 * node + 1, begin + width / 2, width / 2, from, query);
  return found != kNone ? found : find_last(2 * node, begin, width / 2, from, query);
}

std::optional<uint32_t> VariantIndex::nearest(double accuracy, Duration latency) const {
  FOLIOT_CHECK(latency > Duration());
  uint32_t best = kNone;
  double best_distance = std::numeric_limits<double>::infinity();
  if (size() > 0) find_nearest(1, 0, leaves_, accuracy, latency, best, best_distance);
  return best == kNone ? std::nullopt : std::optional(best);
}

// From the most accurate down: what is below a node has at most the accuracy of its last.
void VariantIndex::find_nearest(uint32_t node, uint32_t begin, uint32_t width, double accuracy, Duration latency,
                                uint32_t& best, double& best_distance) const {
  if (begin >= size() || nodes_[node].cost > kNoCostLimit) return;
  const size_t last = std::min<size_t>(begin + width, size()) - 1;
  const double bound = distance(accuracies_[last], nodes_[node].latency, accuracy, latency);
  if (bound >= best_distance) return;
  if (width == 1) {
    best = begin;
    best_distance = bound;
    return;
  }
  find_nearest(2 * node + 1, begin + width / 2, width / 2, accuracy, latency, best, best_distance);
  find_nearest(2 * node, begin, width / 2, accuracy, latency, best, best_distance);
}

}  // namespace foliot
