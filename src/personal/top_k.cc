#include "personal/top_k.h"

#include <algorithm>
#include <array>

#include "personal/cholesky.h"

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

std::vector<ScoredItem> top_k(const ItemTable& table, std::span<const float> weights, size_t k,
                              const std::vector<size_t>* candidates, const std::function<float(size_t)>& bonus) {
  Best best(k);
  if (k == 0) return {};
  const Cholesky<float>& functions = cholesky<float>();
  const auto score = [&](size_t place, float product) {
    best.offer(table.items()[place], bonus ? product + bonus(place) : product);
  };
  if (candidates != nullptr) {
    for (const size_t place : *candidates) {
      float product = 0;
      functions.multiply(table.row(place).data(), 1, table.width(), weights.data(), &product);
      score(place, product);
    }
    return std::move(best).sorted();
  }
  std::array<float, kBlock> products;
  for (size_t begin = 0; begin < table.items().size(); begin += kBlock) {
    const size_t count = std::min(kBlock, table.items().size() - begin);
    functions.multiply(table.row(begin).data(), count, table.width(), weights.data(), products.data());
    for (size_t i = 0; i < count; ++i) score(begin + i, products[i]);
  }
  return std::move(best).sorted();
}

}  // namespace foliot
