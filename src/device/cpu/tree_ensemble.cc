// Ensembles of decision trees. A step through a tree waits for one load after the other,
// so several paths are gone at once: of one row through several trees, or of several
// rows through one. Which of them does not change a result.
#include <algorithm>
#include <array>
#include <limits>

#include "device/cpu/families.h"
#include "device/cpu/parallel.h"
#include "device/tree_node.h"

namespace foliot {
namespace {

// Paths at once: more hide more waiting, until they no longer fit the processor's window.
constexpr int64_t kPaths = 16;

// Indices come from weights, which nothing has checked: what is beyond the end is the last.
struct Bounds {
  uint32_t last_node = 0;
  uint32_t last_feature = 0;
};

// Where each path is, and the row that it is of.
template <typename T>
struct Paths {
  std::array<uint32_t, kPaths> at;
  std::array<const T*, kPaths> rows;
};

template <typename T, bool kMarked>
inline uint32_t next(const TreeNode* nodes, Bounds bounds, uint32_t at, const T* row) {
  const TreeNode& node = nodes[at];
  const auto value = static_cast<double>(row[std::min(node.feature & kTreeFeatureMask, bounds.last_feature)]);
  uint32_t holds = value <= node.threshold ? 1 : 0;
  if constexpr (kMarked) {
    const uint32_t equal = node.feature / kTreeEqual, missing = node.feature / kTreeMissing & 1;
    holds = (holds & ~equal) | (uint32_t{value == node.threshold} & equal) | (uint32_t{value != value} & missing);
  }
  return std::min(node.child + holds, bounds.last_node);
}

// Goes on until every path is at a leaf, and at most `depth` steps and one.
template <typename T, bool kMarked>
void descend(const TreeNode* nodes, Bounds bounds, int64_t depth, Paths<T>& paths) {
  std::array<uint32_t, kPaths> at = paths.at;
  for (int64_t step = 0; step < depth; step += 2) {
    uint32_t moved = 0;
#pragma GCC unroll 16
    for (size_t i = 0; i < kPaths; ++i) at[i] = next<T, kMarked>(nodes, bounds, at[i], paths.rows[i]);
#pragma GCC unroll 16
    for (size_t i = 0; i < kPaths; ++i) {
      const uint32_t to = next<T, kMarked>(nodes, bounds, at[i], paths.rows[i]);
      moved |= to ^ at[i];
      at[i] = to;
    }
    if (moved == 0) break;
  }
  paths.at = at;
}

template <typename T>
bool has_nan(const T* values, int64_t count) {
  uint32_t found = 0;
  for (int64_t i = 0; i < count; ++i) found |= uint32_t{values[i] != values[i]};
  return found != 0;
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
        columns_(view.output().shape[1]),
        missing_(view.attributes().integer("missing") != 0),
        equal_(view.attributes().integer("equal") != 0),
        bounds_{.last_node = static_cast<uint32_t>(view.input(1).shape[0] - 1),
                .last_feature = static_cast<uint32_t>(features_ - 1)} {}

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
  using Descend = void (*)(const TreeNode* nodes, Bounds bounds, int64_t depth, Paths<T>& paths);

  const T* row(Addresses addresses, int64_t row) const {
    return reinterpret_cast<const T*>(addresses[x_]) + row * features_;
  }
  float* result(Addresses addresses, int64_t row) const {
    return reinterpret_cast<float*>(addresses[y_]) + row * columns_;
  }
  const TreeNode* nodes(Addresses addresses) const { return reinterpret_cast<const TreeNode*>(addresses[nodes_]); }

  // Marks only count where a value is NaN, or where some node compares for equality.
  Descend descend_for(const T* values, int64_t count) const {
    return equal_ || (missing_ && has_nan(values, count)) ? descend<T, true> : descend<T, false>;
  }

  // One row, through several trees at a time.
  void take_row(Addresses addresses, int64_t index) const {
    const T* values = row(addresses, index);
    float* y = result(addresses, index);
    std::fill_n(y, columns_, Combine::kFirst);
    const Descend descend = descend_for(values, features_);
    Paths<T> paths;
    paths.rows.fill(values);
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
    std::fill_n(result(addresses, first), kPaths * columns_, Combine::kFirst);
    const Descend descend = descend_for(row(addresses, first), kPaths * features_);
    Paths<T> paths;
    for (int64_t i = 0; i < kPaths; ++i) paths.rows[static_cast<size_t>(i)] = row(addresses, first + i);
    for (int64_t tree = 0; tree < trees_; ++tree) {
      paths.at.fill(static_cast<uint32_t>(tree));
      descend(nodes(addresses), bounds_, depth_, paths);
      for (int64_t i = 0; i < kPaths; ++i)
        add_leaf(addresses, paths.at[static_cast<size_t>(i)], result(addresses, first + i));
    }
  }

  void add_leaf(Addresses addresses, uint32_t node, float* y) const {
    const int64_t leaf = std::min<int64_t>(nodes(addresses)[node].feature & kTreeFeatureMask, leaves_ - 1);
    const float* values = reinterpret_cast<const float*>(addresses[values_]) + leaf * width_;
    if (targets_ != kNoTensor) {
      const int64_t target = reinterpret_cast<const int32_t*>(addresses[targets_])[leaf];
      y += std::clamp<int64_t>(target, 0, columns_ - width_);
    }
    for (int64_t i = 0; i < width_; ++i) y[i] = Combine::combine(y[i], values[i]);
  }

  const TensorIndex x_, nodes_, values_, targets_, y_;
  const int64_t row_count_, features_, trees_, depth_, leaves_, width_, columns_;
  const bool missing_, equal_;
  const Bounds bounds_;
};

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
  FOLIOT_RETURN_IF_ERROR(lowering.emit_dense(node, "foliot:tree_ensemble"));
  return true;
}

Result<std::unique_ptr<Kernel>> make_tree_ensemble(const OperatorView& view) {
  return view.input(0).type == DataType::kFloat64 ? make_for<double>(view) : make_for<float>(view);
}

}  // namespace foliot
