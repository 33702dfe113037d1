// TreeNode: one node of a decision tree, as operators of kTreeEnsemble read it from weights
// (device/operator.h).
//
// A step from a node with value v = X[row, feature] goes to node child + 1 if the node's
// comparison holds, else to node child. It holds if v <= threshold, or with kTreeEqual if
// v == threshold, and with kTreeMissing also if v is NaN. A threshold of NaN holds for no
// number: a leaf is a node with one that is its own child, and its `feature` is its number
// among the leaves; a node that has one and another child is a jump.
#ifndef FOLIOT_DEVICE_TREE_NODE_H_
#define FOLIOT_DEVICE_TREE_NODE_H_

#include <cstdint>

namespace foliot {

struct TreeNode {
  double threshold;
  uint32_t feature;  // with the marks below
  uint32_t child;
};
static_assert(sizeof(TreeNode) == 16);

inline constexpr uint32_t kTreeMissing = uint32_t{1} << 30;
inline constexpr uint32_t kTreeEqual = uint32_t{1} << 31;
inline constexpr uint32_t kTreeFeatureMask = kTreeMissing - 1;

// Of all trees of an ensemble together: 160 MB.
inline constexpr int64_t kTreeNodesMax = 10'000'000;
// Steps from a root to a leaf.
inline constexpr int64_t kTreeDepthMax = 4096;

}  // namespace foliot

#endif  // FOLIOT_DEVICE_TREE_NODE_H_
