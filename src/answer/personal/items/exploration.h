// Exploration: which items are shown beside those with the highest scores, so that the model learns
// of items and users of which it knows little.
//
//   greedy    the highest scores
//   epsilon   each place is drawn uniformly with probability `epsilon`
//   linucb    highest w.f + alpha sqrt(f' A^-1 f)
//   thompson  the highest scores by one draw of the weights from N(w, v^2 A^-1)
//
// Beside that, each place is drawn uniformly with probability `pool`: these make the validation pool, which
// no model has influenced. They are marked, with the probability with which the item was drawn.
//
// Threading: any.
#ifndef FOLIOT_ANSWER_PERSONAL_ITEMS_EXPLORATION_H_
#define FOLIOT_ANSWER_PERSONAL_ITEMS_EXPLORATION_H_

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "answer/personal/items/item_features.h"
#include "answer/personal/items/top_k.h"
#include "answer/personal/weights/user_weights.h"
#include "foundation/base/random.h"

namespace foliot {

enum class ExplorationKind { kGreedy, kEpsilon, kLinucb, kThompson };

// nullopt: there is none of this name.
std::optional<ExplorationKind> exploration_named(std::string_view name);

struct Exploration {
  ExplorationKind kind = ExplorationKind::kThompson;
  double epsilon = 0.05;
  float alpha = 0.5;
  float deviation = 0.5;  // v
  double pool = 0.01;

  // A is needed for it, and not only the weights.
  // The best items of a user are others each time.
  bool draws_weights() const { return kind == ExplorationKind::kThompson; }
  bool needs_factor() const { return kind == ExplorationKind::kLinucb || kind == ExplorationKind::kThompson; }
};

// At most k places. `candidates` as for top_k(). `factor`: the user's; only where it is needed and there is no `best`.
// `best`: null, or what best_items() gives for these items and weights.
std::vector<ScoredItem> explore(const Exploration& exploration, const ItemRows& table, std::span<const float> weights,
                                const UserWeights* factor, size_t k, const std::vector<size_t>* candidates,
                                Random& random, const std::vector<ScoredItem>* best = nullptr);
// The places that are not drawn. Without a use of `random` unless draws_weights().
std::vector<ScoredItem> best_items(const Exploration& exploration, const ItemRows& table,
                                   std::span<const float> weights, const UserWeights* factor, size_t k,
                                   const std::vector<size_t>* candidates, Random& random);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_ITEMS_EXPLORATION_H_
