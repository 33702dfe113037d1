// TreeNode: one node of a decision tree, as operators of kTreeEnsemble read it from weights
// (engine/device/operator.h).
//
// Values are compared by keys: unsigned numbers in the order of the values, so that every
// comparison with a threshold is one of a key with a limit: v <= t by tree_key(t), v < t by
// tree_key(t) - 1. Each feature has two columns, which differ for NaN only: in column 2f its
// key is above all limits, in column 2f + 1 below all.
//
// A step goes from a node to node child + 1 if the key of its column is at most its limit,
// else to node child. Limit 0 is below all keys: a leaf is a node with limit 0 that is its
// own child, and its `column` is its number among the leaves.
#ifndef FOLIOT_ENGINE_DEVICE_TREE_NODE_H_
#define FOLIOT_ENGINE_DEVICE_TREE_NODE_H_

#include <bit>
#include <cstdint>

namespace foliot {

struct TreeNode {
  uint64_t limit;
  uint32_t column;
  uint32_t child;
};
static_assert(sizeof(TreeNode) == 16);

// Of NaN, in even and in odd columns.
inline constexpr uint64_t kTreeKeyAbove = ~uint64_t{0}, kTreeKeyBelow = 1;

// Between the keys of NaN; one for both zeros. REQUIRES: not NaN.
inline uint64_t tree_key(double value) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  const auto bits = std::bit_cast<uint64_t>(value + 0.0);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

// Of all trees of an ensemble together: 160 MB.
inline constexpr int64_t kTreeNodesMax = 10'000'000;
// Steps from a root to a leaf.
inline constexpr int64_t kTreeDepthMax = 4096;

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_TREE_NODE_H_
