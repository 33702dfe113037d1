// Ensembles of decision trees. A step through a tree waits for one load after the other,
// so several paths are gone at once: of one row through several trees, or of several
// rows through one. Which of them does not change a result.
#include <algorithm>
#include <array>
#include <limits>

#include "engine/device/cpu/families.h"
#include "engine/device/cpu/parallel.h"
#include "engine/device/tree_node.h"

namespace foliot {
namespace {

// Paths at once: more hide more waiting, until they no longer fit the processor's window.
constexpr int64_t kPaths = 16;

// Indices come from weights, which nothing has checked: what is beyond the end is the last.
struct Bounds {
  uint32_t last_node = 0;
  uint32_t last_column = 0;
};

// Where each path is, and the keys of the row that it is of.
struct Paths {
  std::array<uint32_t, kPaths> at;
  std::array<const uint64_t*, kPaths> keys;
};

inline uint32_t next(const TreeNode* nodes, Bounds bounds, uint32_t at, const uint64_t* keys) {
  const TreeNode& node = nodes[at];
  const uint64_t key = keys[std::min(node.column, bounds.last_column)];
  return std::min(node.child + (key <= node.limit ? 1 : 0), bounds.last_node);
}

// Goes on until every path is at a leaf, and at most `depth` steps and one.
void descend(const TreeNode* nodes, Bounds bounds, int64_t depth, Paths& paths) {
  std::array<uint32_t, kPaths> at = paths.at;
  for (int64_t step = 0; step < depth; step += 2) {
    uint32_t moved = 0;
#pragma GCC unroll 16
    for (size_t i = 0; i < kPaths; ++i) at[i] = next(nodes, bounds, at[i], paths.keys[i]);
#pragma GCC unroll 16
    for (size_t i = 0; i < kPaths; ++i) {
      const uint32_t to = next(nodes, bounds, at[i], paths.keys[i]);
      moved |= to ^ at[i];
      at[i] = to;
    }
    if (moved == 0) break;
  }
  paths.at = at;
}

// Both columns of each value.
template <typename T>
void make_keys(const T* values, int64_t count, uint64_t* keys) {
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t key = tree_key(static_cast<double>(values[i]));
    const bool is_number = values[i] == values[i];
    keys[2 * i] = is_number ? key : kTreeKeyAbove;
    keys[2 * i + 1] = is_number ? key : kTreeKeyBelow;
  }
}

struct Sum {
  static constexpr float kFirst = 0;
  static float combine(float a, float b) { return a + b; }
};
struct Least {
  static constexpr float kFirst = std::numeric_limits<float>::infinity();
  static float combine(float a, float b) { return b < a ? b : a; }
};
struct Greatest {
  static constexpr float kFirst = -std::numeric_limits<float>::infinity();
  static float combine(float a, float b) { return b > a ? b : a; }
};

template <typename T, typename Combine>
class TreeEnsembleKernel : public Kernel {
 public:
  explicit TreeEnsembleKernel(const OperatorView& view)
      : x_(view.input_index(0)),
        nodes_(view.input_index(1)),
        values_(view.input_index(2)),
        targets_(view.has_input(3) ? view.input_index(3) : kNoTensor),
        y_(view.output_index()),
        row_count_(view.input(0).shape[0]),
        features_(view.input(0).shape[1]),
        trees_(view.attributes().integer("trees")),
        depth_(view.attributes().integer("depth")),
        leaves_(view.input(2).shape[0]),
        width_(view.input(2).shape[1]),
        targets_count_(view.output().shape[1]),
        bounds_{.last_node = static_cast<uint32_t>(view.input(1).shape[0] - 1),
                .last_column = static_cast<uint32_t>(2 * features_ - 1)},
        keys_(view.operation().scratchpad) {}

  Status run(Addresses addresses) override {
    const int64_t whole = row_count_ / kPaths, rest = row_count_ % kPaths;
    const int64_t work = row_count_ * trees_ * std::min<int64_t>(depth_, 8) * 8;
    parallel_for(whole + rest, work, [&](int64_t i) {
      if (i < whole)
        take_rows(addresses, i * kPaths);
      else
        take_row(addresses, whole * kPaths + i - whole);
    });
    return Status();
  }

 private:
  // Of some rows from `first` on.
  void make_row_keys(Addresses addresses, int64_t first, int64_t count) const {
    const T* x = reinterpret_cast<const T*>(addresses[x_]) + first * features_;
    make_keys(x, count * features_, row_keys(addresses, first));
  }
  uint64_t* row_keys(Addresses addresses, int64_t row) const {
    return reinterpret_cast<uint64_t*>(addresses[keys_]) + row * 2 * features_;
  }
  float* result(Addresses addresses, int64_t row) const {
    return reinterpret_cast<float*>(addresses[y_]) + row * targets_count_;
  }
  const TreeNode* nodes(Addresses addresses) const { return reinterpret_cast<const TreeNode*>(addresses[nodes_]); }

  // One row, through several trees at a time.
  void take_row(Addresses addresses, int64_t row) const {
    make_row_keys(addresses, row, 1);
    float* y = result(addresses, row);
    std::fill_n(y, targets_count_, Combine::kFirst);
    Paths paths;
    paths.keys.fill(row_keys(addresses, row));
    for (int64_t tree = 0; tree < trees_; tree += kPaths) {
      for (int64_t i = 0; i < kPaths; ++i)
        paths.at[static_cast<size_t>(i)] = static_cast<uint32_t>(std::min(tree + i, trees_ - 1));
      descend(nodes(addresses), bounds_, depth_, paths);
      for (int64_t i = 0; i < std::min(kPaths, trees_ - tree); ++i)
        add_leaf(addresses, paths.at[static_cast<size_t>(i)], y);
    }
  }

  // kPaths rows, through one tree after the other.
  void take_rows(Addresses addresses, int64_t first) const {
    make_row_keys(addresses, first, kPaths);
    std::fill_n(result(addresses, first), kPaths * targets_count_, Combine::kFirst);
    Paths paths;
    for (int64_t i = 0; i < kPaths; ++i) paths.keys[static_cast<size_t>(i)] = row_keys(addresses, first + i);
    for (int64_t tree = 0; tree < trees_; ++tree) {
      paths.at.fill(static_cast<uint32_t>(tree));
      descend(nodes(addresses), bounds_, depth_, paths);
      for (int64_t i = 0; i < kPaths; ++i)
        add_leaf(addresses, paths.at[static_cast<size_t>(i)], result(addresses, first + i));
    }
  }

  void add_leaf(Addresses addresses, uint32_t node, float* y) const {
    const int64_t leaf = std::min<int64_t>(nodes(addresses)[node].column, leaves_ - 1);
    const float* values = reinterpret_cast<const float*>(addresses[values_]) + leaf * width_;
    if (targets_ != kNoTensor) {
      const int64_t target = reinterpret_cast<const int32_t*>(addresses[targets_])[leaf];
      y += std::clamp<int64_t>(target, 0, targets_count_ - width_);
    }
    for (int64_t i = 0; i < width_; ++i) y[i] = Combine::combine(y[i], values[i]);
  }

  const TensorIndex x_, nodes_, values_, targets_, y_;
  const int64_t row_count_, features_, trees_, depth_, leaves_, width_, targets_count_;
  const Bounds bounds_;
  const TensorIndex keys_;  // [rows, 2 * features]
};

// Of the keys of X[rows, features].
uint64_t key_bytes(const Shape& shape) { return 2 * byte_size(DataType::kUint64, shape); }

template <typename T>
Result<std::unique_ptr<Kernel>> make_for(const OperatorView& view) {
  switch (view.attributes().function()) {
    case Function::kSum: return std::unique_ptr<Kernel>(std::make_unique<TreeEnsembleKernel<T, Sum>>(view));
    case Function::kMin: return std::unique_ptr<Kernel>(std::make_unique<TreeEnsembleKernel<T, Least>>(view));
    case Function::kMax: return std::unique_ptr<Kernel>(std::make_unique<TreeEnsembleKernel<T, Greatest>>(view));
    default: return Status::invalid_argument("combines leaves by sum, min or max only");
  }
}

}  // namespace

Result<bool> lower_tree_ensemble(const Node& node, GraphLowering& lowering) {
  FOLIOT_RETURN_IF_ERROR(
      lowering.emit_dense(node, "foliot:tree_ensemble", key_bytes(lowering.shape(node.inputs.at(0)))));
  return true;
}

Result<std::unique_ptr<Kernel>> make_tree_ensemble(const OperatorView& view) {
  const TensorIndex keys = view.operation().scratchpad;
  if (keys == kNoTensor || view.tensor(keys).bytes < key_bytes(view.input(0).shape))
    return Status::invalid_argument("its scratchpad is too small; compile the model anew");
  return view.input(0).type == DataType::kFloat64 ? make_for<double>(view) : make_for<float>(view);
}

}  // namespace foliot
