#include "answer/personal/items/top_k.h"

#include <algorithm>
#include <array>

#include "answer/personal/weights/cholesky.h"

namespace foliot {
namespace {

constexpr size_t kBlock = 256;

bool is_better(const ScoredItem& a, const ScoredItem& b) {
  return a.score != b.score ? a.score > b.score : a.item < b.item;
}

// The best so far, the worst of them first.
class Best {
 public:
  explicit Best(size_t k) : k_(k) {}
  void offer(uint64_t item, float score) {
    if (heap_.size() == k_ && score < heap_.front().score) return;
    const ScoredItem scored{.item = item, .score = score};
    if (heap_.size() == k_) {
      if (!is_better(scored, heap_.front())) return;
      std::pop_heap(heap_.begin(), heap_.end(), is_better);
      heap_.back() = scored;
    } else {
      heap_.push_back(scored);
    }
    std::push_heap(heap_.begin(), heap_.end(), is_better);
  }
  std::vector<ScoredItem> sorted() && {
    std::sort_heap(heap_.begin(), heap_.end(), is_better);
    return std::move(heap_);
  }

 private:
  const size_t k_;
  std::vector<ScoredItem> heap_;
};

}  // namespace

std::vector<ScoredItem> top_k(const ItemRows& table, std::span<const float> weights, size_t k,
                              const std::vector<size_t>* candidates, const Bonus& bonus) {
  Best best(k);
  if (k == 0) return {};
  const Cholesky<float>& functions = cholesky<float>();
  const size_t size = candidates == nullptr ? table.items.size() : candidates->size();
  std::array<size_t, kBlock> places;
  std::array<float, kBlock> scores;
  std::array<float, kBlock> added;
  for (size_t begin = 0; begin < size; begin += kBlock) {
    const size_t count = std::min(kBlock, size - begin);
    for (size_t i = 0; i < count; ++i) places[i] = candidates == nullptr ? begin + i : (*candidates)[begin + i];
    if (candidates == nullptr) {
      functions.multiply(table.row(begin).data(), count, table.width, weights.data(), scores.data());
    } else {
      for (size_t i = 0; i < count; ++i) {
        functions.multiply(table.row(places[i]).data(), 1, table.width, weights.data(), &scores[i]);
      }
    }
    if (bonus) {
      bonus(std::span(places).first(count), std::span(added).first(count));
      for (size_t i = 0; i < count; ++i) scores[i] += added[i];
    }
    for (size_t i = 0; i < count; ++i) best.offer(table.items[places[i]], scores[i]);
  }
  return std::move(best).sorted();
}

}  // namespace foliot
