#include "answer/personal/items/exploration.h"

#include <algorithm>

#include "answer/personal/weights/cholesky.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

// Draws an item for each place that is drawn at all, no item twice.
std::vector<std::optional<ScoredItem>> draw_places(const Exploration& exploration, const ItemRows& table,
                                                   std::span<const float> weights, size_t places,
                                                   const std::vector<size_t>* candidates, Random& random) {
  const size_t size = candidates == nullptr ? table.items.size() : candidates->size();
  const double epsilon = exploration.kind == ExplorationKind::kEpsilon ? exploration.epsilon : 0;
  std::vector<std::optional<ScoredItem>> drawn(places);
  std::vector<size_t> used;
  for (std::optional<ScoredItem>& place : drawn) {
    const double chance = random.uniform();
    if (chance >= exploration.pool + epsilon) continue;
    size_t index = random.below(size);
    while (std::find(used.begin(), used.end(), index) != used.end()) index = random.below(size);
    const size_t row = candidates == nullptr ? index : (*candidates)[index];
    ScoredItem item{.item = table.items[row]};
    cholesky<float>().multiply(table.row(row).data(), 1, table.width, weights.data(), &item.score);
    item.is_drawn = chance < exploration.pool;
    if (item.is_drawn) item.probability = exploration.pool / static_cast<double>(size - used.size());
    used.push_back(index);
    place = item;
  }
  return drawn;
}

}  // namespace

std::optional<ExplorationKind> exploration_named(std::string_view name) {
  if (name == "greedy") return ExplorationKind::kGreedy;
  if (name == "epsilon") return ExplorationKind::kEpsilon;
  if (name == "linucb") return ExplorationKind::kLinucb;
  if (name == "thompson") return ExplorationKind::kThompson;
  return std::nullopt;
}

std::vector<ScoredItem> best_items(const Exploration& exploration, const ItemRows& table,
                                   std::span<const float> weights, const UserWeights* factor, size_t k,
                                   const std::vector<size_t>* candidates, Random& random) {
  if (exploration.kind == ExplorationKind::kThompson) {
    std::vector<float> drawn(table.width);
    factor->draw(weights, exploration.deviation, random, drawn);
    return top_k(table, drawn, k, candidates);
  }
  if (exploration.kind != ExplorationKind::kLinucb) return top_k(table, weights, k, candidates);
  std::vector<const float*> rows;
  return top_k(table, weights, k, candidates, [&](std::span<const size_t> items, std::span<float> bonus) {
    rows.clear();
    for (const size_t item : items) rows.push_back(table.row(item).data());
    factor->uncertainties(rows, bonus);
    for (float& each : bonus) each *= exploration.alpha;
  });
}

std::vector<ScoredItem> explore(const Exploration& exploration, const ItemRows& table, std::span<const float> weights,
                                const UserWeights* factor, size_t k, const std::vector<size_t>* candidates,
                                Random& random, const std::vector<ScoredItem>* best) {
  FOLIOT_CHECK(best != nullptr || factor != nullptr || !exploration.needs_factor());
  const size_t places = std::min(k, candidates == nullptr ? table.items.size() : candidates->size());
  const std::vector<std::optional<ScoredItem>> drawn =
      draw_places(exploration, table, weights, places, candidates, random);
  std::vector<ScoredItem> found;
  if (best == nullptr) found = best_items(exploration, table, weights, factor, places, candidates, random);
  const std::vector<ScoredItem>& ranked = best == nullptr ? found : *best;
  std::vector<uint64_t> taken;
  for (const std::optional<ScoredItem>& place : drawn) {
    if (place) taken.push_back(place->item);
  }
  std::sort(taken.begin(), taken.end());
  std::vector<ScoredItem> shown;
  auto next = ranked.begin();
  for (const std::optional<ScoredItem>& place : drawn) {
    while (!place && std::binary_search(taken.begin(), taken.end(), next->item)) ++next;
    shown.push_back(place ? *place : *next++);
  }
  return shown;
}

}  // namespace foliot
