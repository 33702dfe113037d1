#include "compiler/memory_planner.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "base/check.h"

namespace foliot {
namespace {

uint64_t aligned(uint64_t bytes) { return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment; }

// The tensor whose storage this one shares in the end.
TensorIndex root_of(const Plan& plan, TensorIndex index) {
  size_t steps = 0;
  while (plan.tensors[index].alias_of != kNoTensor) {
    FOLIOT_CHECK(++steps <= plan.tensors.size());
    index = plan.tensors[index].alias_of;
  }
  return index;
}

// Operators [first, last] between which a tensor's storage must be kept.
struct Lifetime {
  size_t first = std::numeric_limits<size_t>::max();
  size_t last = 0;

  void include(size_t position) {
    first = std::min(first, position);
    last = std::max(last, position);
  }
  bool is_used() const { return first <= last; }
  bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

// By root; aliases count for the tensor that they share.
std::vector<Lifetime> find_lifetimes(const Plan& plan) {
  std::vector<Lifetime> lifetimes(plan.tensors.size());
  for (size_t i = 0; i < plan.operators.size(); ++i) {
    const Operator& step = plan.operators[i];
    const auto touch = [&](TensorIndex index) {
      if (index != kNoTensor) lifetimes[root_of(plan, index)].include(i);
    };
    std::ranges::for_each(step.inputs, touch);
    std::ranges::for_each(step.outputs, touch);
    touch(step.scratchpad);
  }
  return lifetimes;
}

struct Placed {
  uint64_t begin;
  uint64_t end;
};

// The start of the smallest gap between what is placed that holds `bytes`; the
// end of it all where no gap does.
uint64_t best_fit(std::vector<Placed> placed, uint64_t bytes) {
  std::ranges::sort(placed, {}, &Placed::begin);
  uint64_t best = 0;
  uint64_t best_gap = std::numeric_limits<uint64_t>::max();
  uint64_t end = 0;
  for (const Placed& other : placed) {
    if (other.begin > end && other.begin - end >= bytes && other.begin - end < best_gap) {
      best = end;
      best_gap = other.begin - end;
    }
    end = std::max(end, other.end);
  }
  return best_gap == std::numeric_limits<uint64_t>::max() ? end : best;
}

// Largest first: they are the hardest to place.
uint64_t place_workspace(Plan& plan) {
  const std::vector<Lifetime> lifetimes = find_lifetimes(plan);
  std::vector<TensorIndex> order;
  for (TensorIndex i = 0; i < plan.tensors.size(); ++i) {
    const Tensor& tensor = plan.tensors[i];
    if (tensor.alias_of == kNoTensor && tensor.place == Place::kWorkspace) order.push_back(i);
  }
  std::ranges::stable_sort(order, std::greater(), [&](TensorIndex i) { return plan.tensors[i].bytes; });

  uint64_t total = 0;
  std::vector<TensorIndex> done;
  for (TensorIndex index : order) {
    Tensor& tensor = plan.tensors[index];
    tensor.offset = 0;
    if (lifetimes[index].is_used()) {
      std::vector<Placed> neighbours;
      for (TensorIndex other : done) {
        if (!lifetimes[other].overlaps(lifetimes[index])) continue;
        const uint64_t begin = plan.tensors[other].offset;
        neighbours.push_back({begin, begin + aligned(plan.tensors[other].bytes)});
      }
      tensor.offset = best_fit(std::move(neighbours), tensor.bytes);
      done.push_back(index);
    }
    total = std::max(total, tensor.offset + aligned(tensor.bytes));
  }
  return total;
}

// One behind the other; returns the size of the block.
uint64_t place_ends(Plan& plan, const std::vector<TensorIndex>& indices, Place place) {
  uint64_t offset = 0;
  for (TensorIndex index : indices) {
    Tensor& tensor = plan.tensors[index];
    FOLIOT_CHECK(tensor.place == place && tensor.alias_of == kNoTensor);
    tensor.offset = offset;
    offset += aligned(tensor.bytes);
  }
  return offset;
}

void place_aliases(Plan& plan) {
  for (TensorIndex i = 0; i < plan.tensors.size(); ++i) {
    const Tensor& root = plan.tensors[root_of(plan, i)];
    Tensor& tensor = plan.tensors[i];
    uint64_t offset = root.offset;
    for (TensorIndex at = i; plan.tensors[at].alias_of != kNoTensor; at = plan.tensors[at].alias_of) {
      offset += plan.tensors[at].alias_offset;
    }
    tensor.place = root.place;
    tensor.offset = offset;
    FOLIOT_CHECK(offset + tensor.bytes <= root.offset + root.bytes);
  }
}

}  // namespace

void plan_memory(Plan& plan) {
  plan.input_bytes = place_ends(plan, plan.inputs, Place::kInput);
  plan.output_bytes = place_ends(plan, plan.outputs, Place::kOutput);
  plan.workspace_bytes = place_workspace(plan);
  place_aliases(plan);
}

uint64_t workspace_bytes_min(const Plan& plan) {
  const std::vector<Lifetime> lifetimes = find_lifetimes(plan);
  std::vector<uint64_t> alive(plan.operators.size());
  for (TensorIndex i = 0; i < plan.tensors.size(); ++i) {
    const Tensor& tensor = plan.tensors[i];
    if (tensor.alias_of != kNoTensor || tensor.place != Place::kWorkspace || !lifetimes[i].is_used()) continue;
    for (size_t at = lifetimes[i].first; at <= lifetimes[i].last; ++at) alive[at] += aligned(tensor.bytes);
  }
  return alive.empty() ? 0 : *std::ranges::max_element(alive);
}

}  // namespace foliot
