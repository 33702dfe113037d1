#include "engine/compiler/memory_planner.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// Of each order. One costs milliseconds for a thousand tensors.
constexpr int kAttemptsMax = 20;

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
  size_t length() const { return is_used() ? last - first + 1 : 0; }
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

// A place for every tensor of the workspace.
struct Placement {
  std::vector<uint64_t> offsets;  // by tensor
  uint64_t bytes = 0;
  size_t highest = 0;  // position in the order of a tensor that ends there
};

Placement place_in_order(const Plan& plan, const std::vector<Lifetime>& lifetimes,
                         const std::vector<TensorIndex>& order) {
  Placement placement{.offsets = std::vector<uint64_t>(plan.tensors.size()), .bytes = 0, .highest = 0};
  for (size_t i = 0; i < order.size(); ++i) {
    std::vector<Placed> neighbours;
    for (size_t j = 0; j < i; ++j) {
      if (!lifetimes[order[j]].overlaps(lifetimes[order[i]])) continue;
      const uint64_t begin = placement.offsets[order[j]];
      neighbours.push_back({begin, begin + aligned(plan.tensors[order[j]].bytes)});
    }
    const uint64_t bytes = aligned(plan.tensors[order[i]].bytes);
    const uint64_t offset = best_fit(std::move(neighbours), bytes);
    placement.offsets[order[i]] = offset;
    if (offset + bytes > placement.bytes) {
      placement.bytes = offset + bytes;
      placement.highest = i;
    }
  }
  return placement;
}

// Orders in which placing does well: largest first, since they are the hardest to
// place; longest-lived first, which suits many small tensors beside few lasting
// ones; and as they come to life.
std::vector<std::vector<TensorIndex>> placing_orders(const Plan& plan, const std::vector<Lifetime>& lifetimes) {
  std::vector<TensorIndex> by_size;
  for (TensorIndex i = 0; i < plan.tensors.size(); ++i) {
    const Tensor& tensor = plan.tensors[i];
    if (tensor.alias_of == kNoTensor && tensor.place == Place::kWorkspace) by_size.push_back(i);
  }
  std::ranges::stable_sort(by_size, std::greater(), [&](TensorIndex i) { return plan.tensors[i].bytes; });
  std::vector<TensorIndex> by_length = by_size;
  std::ranges::stable_sort(by_length, std::greater(), [&](TensorIndex i) { return lifetimes[i].length(); });
  std::vector<TensorIndex> by_birth = by_length;
  std::ranges::stable_sort(by_birth, {}, [&](TensorIndex i) { return lifetimes[i].first; });
  return {std::move(by_size), std::move(by_length), std::move(by_birth)};
}

// Where an order leaves more than the least, what sticks out at the end is placed
// before all others, and so on.
uint64_t place_workspace(Plan& plan) {
  const std::vector<Lifetime> lifetimes = find_lifetimes(plan);
  const uint64_t least = workspace_bytes_min(plan);
  Placement best{.offsets = {}, .bytes = std::numeric_limits<uint64_t>::max()};
  for (std::vector<TensorIndex>& order : placing_orders(plan, lifetimes)) {
    for (int i = 0; i < kAttemptsMax && best.bytes > least; ++i) {
      Placement placement = place_in_order(plan, lifetimes, order);
      const auto highest = order.begin() + static_cast<std::ptrdiff_t>(placement.highest);
      if (placement.bytes < best.bytes) best = std::move(placement);
      if (!order.empty()) std::rotate(order.begin(), highest, highest + 1);
    }
  }
  for (TensorIndex i = 0; i < plan.tensors.size(); ++i) {
    Tensor& tensor = plan.tensors[i];
    if (tensor.alias_of == kNoTensor && tensor.place == Place::kWorkspace) tensor.offset = best.offsets[i];
  }
  return best.bytes;
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
