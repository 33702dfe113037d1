// top_k(): the items with the highest scores, exactly. Among equals the one with the lower id
// comes first.
//
// Threading: any.
#ifndef FOLIOT_ANSWER_PERSONAL_ITEMS_TOP_K_H_
#define FOLIOT_ANSWER_PERSONAL_ITEMS_TOP_K_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "answer/personal/items/item_features.h"

namespace foliot {

struct ScoredItem {
  uint64_t item = 0;
  float score = 0;
  bool is_drawn = false;   // uniformly, for the validation pool (exploration.h)
  double probability = 1;  // of its being drawn for this place, if it is
};

using Bonus = std::function<void(std::span<const size_t> places, std::span<float> bonus)>;

// `weights` has table.width entries. `candidates`: places in the table, each once; null: all of it.
// `bonus`: writes what is added to the scores of these places; may be empty. Best first, at most k.
std::vector<ScoredItem> top_k(const ItemRows& table, std::span<const float> weights, size_t k,
                              const std::vector<size_t>* candidates = nullptr, const Bonus& bonus = {});

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_ITEMS_TOP_K_H_
