// Ensembles of decision trees, of ai.onnx.ml: each becomes one operator on flat nodes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "engine/compiler/operators/attribute_check.h"
#include "engine/compiler/operators/onnx_operator.h"
#include "engine/compiler/operators/post_transform.h"
#include "engine/device/tree_node.h"

namespace foliot {
namespace {

enum class Mode : uint8_t { kLeq, kLt, kGte, kGt, kEq, kNeq, kMember, kLeaf };

constexpr std::pair<std::string_view, Mode> kModes[] = {
    {"BRANCH_LEQ", Mode::kLeq}, {"BRANCH_LT", Mode::kLt},   {"BRANCH_GTE", Mode::kGte}, {"BRANCH_GT", Mode::kGt},
    {"BRANCH_EQ", Mode::kEq},   {"BRANCH_NEQ", Mode::kNeq}, {"LEAF", Mode::kLeaf}};

// A leaf's addend to one target.
struct Weight {
  int64_t target;
  float value;
};

// A node as ONNX has it, checked.
struct Split {
  Mode mode = Mode::kLeaf;
  uint32_t feature = 0;
  bool missing_is_true = false;
  double threshold = 0;
  size_t on_true = 0, on_false = 0;  // positions of splits
  std::vector<double> members;       // kMember
  std::vector<Weight> weights;       // kLeaf
};

struct Trees {
  std::vector<Split> splits;
  std::vector<size_t> roots;
};

Status check_count(size_t nodes) {
  if (nodes <= static_cast<size_t>(kTreeNodesMax)) return {};
  return Status::resource_exhausted(fmt::format(
      "its trees have {} nodes, at most {} can be served; train fewer or smaller trees", nodes, kTreeNodesMax));
}

Status check_target(std::string_view name, int64_t target, int64_t targets) {
  if (target >= 0 && target < targets) return {};
  return invalid("attribute '{}' has {}, which is not in 0..{}", name, target, targets - 1);
}

// The attribute as floats, or as the tensor that newer opsets have beside it.
Result<std::vector<double>> reals(NodeTranslation& node, const std::string& name) {
  if (node.has_attribute(name + "_as_tensor")) {
    FOLIOT_ASSIGN_OR_RETURN(const Constant tensor, node.tensor(name + "_as_tensor"));
    if (!is_floating(tensor.type)) return invalid("attribute '{}_as_tensor' is {}", name, to_string(tensor.type));
    return to_doubles(tensor);
  }
  const std::vector<float> values = node.reals(name);
  return std::vector<double>(values.begin(), values.end());
}

Status check_split(const Split& split, int64_t feature, int64_t features, std::string_view where) {
  if (feature < 0 || feature >= features) {
    return invalid("{} compares feature {}, but the input has {} features", where, feature, features);
  }
  if (split.mode != Mode::kMember && std::isnan(split.threshold)) return invalid("{} has a threshold of NaN", where);
  return {};
}

// Reads TreeEnsembleRegressor and TreeEnsembleClassifier, whose lists are of all nodes of
// all trees, identified by pairs of numbers.
class NumberedTrees {
 public:
  NumberedTrees(NodeTranslation& node, int64_t features) : node_(node), features_(features) {}

  // `kind`: "target" or "class", as their attributes begin.
  Result<Trees> read(const std::string& kind, int64_t targets) {
    FOLIOT_RETURN_IF_ERROR(read_lists());
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (!positions_.emplace(std::pair(tree_ids_[i], ids_[i]), i).second) {
        return invalid("{} stands there twice", describe(i));
      }
    }
    trees_.splits.resize(ids_.size());
    for (size_t i = 0; i < ids_.size(); ++i) FOLIOT_RETURN_IF_ERROR(read_split(i));
    FOLIOT_RETURN_IF_ERROR(read_weights(kind, targets));
    FOLIOT_RETURN_IF_ERROR(find_roots());
    return std::move(trees_);
  }

 private:
  std::string describe(size_t i) const { return fmt::format("node {} of tree {}", ids_[i], tree_ids_[i]); }

  Status read_lists() {
    ids_ = node_.integers("nodes_nodeids");
    if (ids_.empty()) return invalid("attribute 'nodes_nodeids' is missing or empty");
    FOLIOT_RETURN_IF_ERROR(check_count(ids_.size()));
    const auto check = [&](std::string_view name, const auto& values) {
      return check_value_count(name, values.size(), ids_.size(), "as 'nodes_nodeids' has");
    };
    tree_ids_ = node_.integers("nodes_treeids");
    features_of_ = node_.integers("nodes_featureids");
    modes_ = node_.texts("nodes_modes");
    on_true_ = node_.integers("nodes_truenodeids");
    on_false_ = node_.integers("nodes_falsenodeids");
    missing_ = node_.integers("nodes_missing_value_tracks_true");
    FOLIOT_ASSIGN_OR_RETURN(thresholds_, reals(node_, "nodes_values"));
    FOLIOT_RETURN_IF_ERROR(check("nodes_treeids", tree_ids_));
    FOLIOT_RETURN_IF_ERROR(check("nodes_featureids", features_of_));
    FOLIOT_RETURN_IF_ERROR(check("nodes_modes", modes_));
    FOLIOT_RETURN_IF_ERROR(check("nodes_truenodeids", on_true_));
    FOLIOT_RETURN_IF_ERROR(check("nodes_falsenodeids", on_false_));
    FOLIOT_RETURN_IF_ERROR(check("nodes_values", thresholds_));
    if (missing_.empty()) missing_.assign(ids_.size(), 0);
    return check("nodes_missing_value_tracks_true", missing_);
  }

  Status read_split(size_t i) {
    Split& split = trees_.splits[i];
    const auto mode =
        std::ranges::find(kModes, std::string_view(modes_[i]), [](const auto& entry) { return entry.first; });
    if (mode == std::end(kModes)) return invalid("{} has the unknown mode '{}'", describe(i), modes_[i]);
    split.mode = mode->second;
    if (split.mode == Mode::kLeaf) return {};
    split.threshold = thresholds_[i];
    split.missing_is_true = missing_[i] != 0;
    FOLIOT_RETURN_IF_ERROR(check_split(split, features_of_[i], features_, describe(i)));
    split.feature = static_cast<uint32_t>(features_of_[i]);
    FOLIOT_ASSIGN_OR_RETURN(split.on_true, child(i, on_true_[i]));
    FOLIOT_ASSIGN_OR_RETURN(split.on_false, child(i, on_false_[i]));
    return {};
  }

  Result<size_t> child(size_t i, int64_t id) const {
    const auto found = positions_.find({tree_ids_[i], id});
    if (found != positions_.end()) return found->second;
    return invalid("{} leads to node {}, which the tree does not have", describe(i), id);
  }

  Status read_weights(const std::string& kind, int64_t targets) {
    const std::vector<int64_t> nodes = node_.integers(kind + "_nodeids"), trees = node_.integers(kind + "_treeids"),
                               ids = node_.integers(kind + "_ids");
    FOLIOT_ASSIGN_OR_RETURN(const std::vector<double> weights, reals(node_, kind + "_weights"));
    const std::string as = fmt::format("as '{}_nodeids' has", kind);
    FOLIOT_RETURN_IF_ERROR(check_value_count(kind + "_treeids", trees.size(), nodes.size(), as));
    FOLIOT_RETURN_IF_ERROR(check_value_count(kind + "_ids", ids.size(), nodes.size(), as));
    FOLIOT_RETURN_IF_ERROR(check_value_count(kind + "_weights", weights.size(), nodes.size(), as));
    for (size_t i = 0; i < nodes.size(); ++i) {
      FOLIOT_RETURN_IF_ERROR(check_target(kind + "_ids", ids[i], targets));
      const auto found = positions_.find({trees[i], nodes[i]});
      if (found == positions_.end()) {
        return invalid("attribute '{}_nodeids' has node {} of tree {}, which there is not", kind, nodes[i], trees[i]);
      }
      if (std::isnan(weights[i])) return invalid("{} has a weight of NaN", describe(found->second));
      trees_.splits[found->second].weights.push_back({ids[i], static_cast<float>(weights[i])});
    }
    return {};
  }

  // Of each tree, in the order in which they first occur, the one node that no other leads to.
  Status find_roots() {
    std::vector<bool> is_child(ids_.size(), false);
    for (const Split& split : trees_.splits) {
      if (split.mode != Mode::kLeaf) is_child[split.on_true] = is_child[split.on_false] = true;
    }
    std::map<int64_t, size_t> root_of;
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (is_child[i]) continue;
      if (!root_of.emplace(tree_ids_[i], i).second) {
        return invalid("{} and {} are both roots", describe(root_of[tree_ids_[i]]), describe(i));
      }
    }
    std::set<int64_t> seen;
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (!seen.insert(tree_ids_[i]).second) continue;
      const auto root = root_of.find(tree_ids_[i]);
      if (root == root_of.end()) return invalid("tree {} has no root: its nodes lead in a circle", tree_ids_[i]);
      trees_.roots.push_back(root->second);
    }
    return {};
  }

  NodeTranslation& node_;
  const int64_t features_;
  std::vector<int64_t> ids_, tree_ids_, features_of_, on_true_, on_false_, missing_;
  std::vector<std::string> modes_;
  std::vector<double> thresholds_;
  std::map<std::pair<int64_t, int64_t>, size_t> positions_;
  Trees trees_;
};

// Reads TreeEnsemble, whose nodes and leaves have lists of their own and are identified
// by their positions.
class IndexedTrees {
 public:
  IndexedTrees(NodeTranslation& node, int64_t features) : node_(node), features_(features) {}

  Result<Trees> read(int64_t targets) {
    FOLIOT_RETURN_IF_ERROR(read_lists());
    trees_.splits.resize(features_of_.size());
    size_t member = 0;
    for (size_t i = 0; i < features_of_.size(); ++i) FOLIOT_RETURN_IF_ERROR(read_split(i, targets, &member));
    for (int64_t root : node_.integers("tree_roots")) {
      FOLIOT_ASSIGN_OR_RETURN(const size_t position, checked("tree_roots", root, features_of_.size()));
      trees_.roots.push_back(position);
    }
    if (trees_.roots.empty()) return invalid("attribute 'tree_roots' is missing or empty");
    return std::move(trees_);
  }

 private:
  Result<std::vector<double>> tensor(const char* name) const {
    FOLIOT_ASSIGN_OR_RETURN(const Constant constant, node_.tensor(name));
    return to_doubles(constant);
  }

  Status read_lists() {
    features_of_ = node_.integers("nodes_featureids");
    if (features_of_.empty()) return invalid("attribute 'nodes_featureids' is missing or empty");
    FOLIOT_RETURN_IF_ERROR(check_count(features_of_.size()));
    const auto check = [&](std::string_view name, const auto& values) {
      return check_value_count(name, values.size(), features_of_.size(), "as 'nodes_featureids' has");
    };
    FOLIOT_ASSIGN_OR_RETURN(modes_, tensor("nodes_modes"));
    FOLIOT_ASSIGN_OR_RETURN(thresholds_, tensor("nodes_splits"));
    FOLIOT_ASSIGN_OR_RETURN(weights_, tensor("leaf_weights"));
    if (node_.has_attribute("membership_values")) {
      FOLIOT_ASSIGN_OR_RETURN(members_, tensor("membership_values"));
      FOLIOT_RETURN_IF_ERROR(check_count(members_.size()));
    }
    on_true_ = node_.integers("nodes_truenodeids");
    on_false_ = node_.integers("nodes_falsenodeids");
    true_is_leaf_ = node_.integers("nodes_trueleafs");
    false_is_leaf_ = node_.integers("nodes_falseleafs");
    missing_ = node_.integers("nodes_missing_value_tracks_true");
    targets_of_ = node_.integers("leaf_targetids");
    FOLIOT_RETURN_IF_ERROR(check("nodes_modes", modes_));
    FOLIOT_RETURN_IF_ERROR(check("nodes_splits", thresholds_));
    FOLIOT_RETURN_IF_ERROR(check("nodes_truenodeids", on_true_));
    FOLIOT_RETURN_IF_ERROR(check("nodes_falsenodeids", on_false_));
    FOLIOT_RETURN_IF_ERROR(check("nodes_trueleafs", true_is_leaf_));
    FOLIOT_RETURN_IF_ERROR(check("nodes_falseleafs", false_is_leaf_));
    if (missing_.empty()) missing_.assign(features_of_.size(), 0);
    FOLIOT_RETURN_IF_ERROR(check("nodes_missing_value_tracks_true", missing_));
    return check_value_count("leaf_weights", weights_.size(), targets_of_.size(), "as 'leaf_targetids' has");
  }

  static Result<size_t> checked(std::string_view name, int64_t position, size_t count) {
    if (position >= 0 && static_cast<size_t>(position) < count) return static_cast<size_t>(position);
    return invalid("attribute '{}' has {}, but there are {}", name, position, count);
  }

  Status read_split(size_t i, int64_t targets, size_t* member) {
    Split split;
    if (modes_[i] < 0 || modes_[i] > 6) return invalid("node {} has the unknown mode {}", i, modes_[i]);
    split.mode = static_cast<Mode>(static_cast<int>(modes_[i]));
    split.threshold = thresholds_[i];
    split.missing_is_true = missing_[i] != 0;
    FOLIOT_RETURN_IF_ERROR(check_split(split, features_of_[i], features_, fmt::format("node {}", i)));
    split.feature = static_cast<uint32_t>(features_of_[i]);
    // The sets of all nodes stand one after the other, each ended by NaN.
    while (split.mode == Mode::kMember && *member < members_.size() && !std::isnan(members_[*member])) {
      split.members.push_back(members_[(*member)++]);
    }
    if (split.mode == Mode::kMember && (*member)++ >= members_.size()) {
      return invalid("attribute 'membership_values' has no set for node {}", i);
    }
    FOLIOT_ASSIGN_OR_RETURN(split.on_true, child("nodes_truenodeids", on_true_[i], true_is_leaf_[i] != 0, targets));
    FOLIOT_ASSIGN_OR_RETURN(split.on_false, child("nodes_falsenodeids", on_false_[i], false_is_leaf_[i] != 0, targets));
    trees_.splits[i] = std::move(split);
    return {};
  }

  // Each place that a leaf stands at gets one of its own.
  Result<size_t> child(std::string_view name, int64_t id, bool is_leaf, int64_t targets) {
    FOLIOT_ASSIGN_OR_RETURN(const size_t position,
                            checked(name, id, is_leaf ? targets_of_.size() : features_of_.size()));
    if (!is_leaf) return position;
    FOLIOT_RETURN_IF_ERROR(check_target("leaf_targetids", targets_of_[position], targets));
    if (std::isnan(weights_[position])) return invalid("leaf {} has a weight of NaN", position);
    trees_.splits.push_back(
        {.members = {}, .weights = {{targets_of_[position], static_cast<float>(weights_[position])}}});
    return trees_.splits.size() - 1;
  }

  NodeTranslation& node_;
  const int64_t features_;
  std::vector<int64_t> features_of_, on_true_, on_false_, true_is_leaf_, false_is_leaf_, missing_, targets_of_;
  std::vector<double> modes_, thresholds_, weights_, members_;
  Trees trees_;
};

// Lays trees out as a device takes them: all roots, then tree by tree, level by level.
class FlatTrees {
 public:
  explicit FlatTrees(const Trees& trees) : trees_(trees), nodes_(trees.roots.size()) {}

  Status flatten() {
    constexpr uint32_t kNowhere = ~uint32_t{0};
    std::vector<uint32_t> reached(trees_.splits.size(), kNowhere);  // where each split is put
    bool shares = false;
    for (size_t tree = 0; tree < trees_.roots.size(); ++tree) {
      std::deque<Place> places{{trees_.roots[tree], static_cast<uint32_t>(tree), 0}};
      while (!places.empty()) {
        const Place place = places.front();
        places.pop_front();
        // A jump to where it is.
        if (reached[place.split] != kNowhere) {
          nodes_[place.at] = {0, 0, reached[place.split]};
          shares = true;
          continue;
        }
        reached[place.split] = place.at;
        depth_ = std::max(depth_, place.depth);
        if (depth_ > kTreeDepthMax) return invalid("tree {} has more than {} levels", tree, kTreeDepthMax);
        put(place, &places);
        FOLIOT_RETURN_IF_ERROR(check_count(nodes_.size()));
      }
    }
    if (shares) FOLIOT_RETURN_IF_ERROR(measure_depth());
    const auto lost = std::ranges::find(reached, kNowhere);
    if (lost == reached.end()) return {};
    return invalid("no root leads to the node at position {} of the lists: it is its own ancestor, or left over",
                   lost - reached.begin());
  }

  int64_t depth() const { return depth_; }
  // Of each leaf, by number: its split.
  const std::vector<size_t>& leaves() const { return leaves_; }

  Constant nodes() const {
    std::vector<std::byte> bytes(nodes_.size() * sizeof(TreeNode));
    std::memcpy(bytes.data(), nodes_.data(), bytes.size());
    return make_constant(DataType::kUint8, {static_cast<int64_t>(nodes_.size()), sizeof(TreeNode)}, std::move(bytes));
  }

 private:
  // Where a split is to be put.
  struct Place {
    size_t split;
    uint32_t at;
    int64_t depth;
  };

  // The longest way from a root to a leaf, where several ways lead to a node. An error if one leads back.
  Status measure_depth() {
    constexpr int32_t kUnknown = -1, kOpen = -2;
    std::vector<int32_t> steps(nodes_.size(), kUnknown);  // to a leaf, at most
    for (uint32_t tree = 0; tree < trees_.roots.size(); ++tree) {
      std::vector<uint32_t> way{tree};
      while (!way.empty()) {
        const uint32_t at = way.back(), first = nodes_[at].child, last = first + (nodes_[at].limit == 0 ? 0 : 1);
        if (way.size() > static_cast<size_t>(kTreeDepthMax))
          return invalid("tree {} has more than {} levels", tree, kTreeDepthMax);
        int32_t most = first == at ? -1 : 0;
        steps[at] = kOpen;
        for (uint32_t child = first; child != at && child <= last; ++child) {
          if (steps[child] == kOpen) return invalid("tree {} has a node that is its own ancestor", tree);
          if (steps[child] == kUnknown) {
            way.push_back(child);
            break;
          }
          most = std::max(most, steps[child]);
        }
        if (way.back() != at) continue;
        steps[at] = most + 1;
        way.pop_back();
      }
      depth_ = std::max<int64_t>(depth_, steps[tree]);
    }
    return depth_ <= kTreeDepthMax ? Status() : invalid("a tree has more than {} levels", kTreeDepthMax);
  }

  // Two nodes side by side.
  uint32_t add_pair() {
    nodes_.resize(nodes_.size() + 2);
    return static_cast<uint32_t>(nodes_.size() - 2);
  }

  void put(const Place& place, std::deque<Place>* places) {
    const Split& split = trees_.splits[place.split];
    switch (split.mode) {
      case Mode::kLeaf:
        nodes_[place.at] = {0, static_cast<uint32_t>(leaves_.size()), place.at};
        leaves_.push_back(place.split);
        return;
      case Mode::kLeq:
      case Mode::kLt:
      case Mode::kGte:
      case Mode::kGt: return put_order(place, places);
      case Mode::kEq:
        return put_members(place, {split.threshold}, split.missing_is_true, split.on_true, split.on_false, places);
      case Mode::kNeq:  // NaN is unequal to all
        return put_members(place, {split.threshold}, false, split.on_false, split.on_true, places);
      case Mode::kMember:
        return put_members(place, split.members, split.missing_is_true, split.on_true, split.on_false, places);
    }
  }

  // The column in which NaN holds, or does not.
  static uint32_t column(const Split& split, bool missing_holds) { return 2 * split.feature + (missing_holds ? 1 : 0); }

  // v <= t and v < t, or their opposites with the children in each other's place.
  void put_order(const Place& place, std::deque<Place>* places) {
    const Split& split = trees_.splits[place.split];
    const bool opposite = split.mode == Mode::kGt || split.mode == Mode::kGte;
    const bool strict = split.mode == Mode::kLt || split.mode == Mode::kGte;
    const uint32_t child = add_pair();
    nodes_[place.at] = {tree_key(split.threshold) - (strict ? 1 : 0), column(split, split.missing_is_true != opposite),
                        child};
    places->push_back({opposite ? split.on_true : split.on_false, child, place.depth + 1});
    places->push_back({opposite ? split.on_false : split.on_true, child + 1, place.depth + 1});
  }

  // Whether a value is one of a set: for each member whether it is at most that, and then
  // whether it is below. From wherever that is known, a jump leads to the child.
  void put_members(const Place& place, std::vector<double> members, bool missing, size_t inside, size_t outside,
                   std::deque<Place>* places) {
    const Split& split = trees_.splits[place.split];
    std::ranges::sort(members);
    const uint32_t ends = add_pair();  // outside, inside
    uint32_t at = place.at;
    int64_t depth = place.depth;
    for (double member : members) {
      const uint32_t first = add_pair(), second = add_pair();
      nodes_[at] = {tree_key(member), column(split, missing), first};
      // NaN that is inside is here: in the other column it is not below.
      nodes_[first + 1] = {tree_key(member) - 1, column(split, false), second};
      nodes_[second] = {0, 0, ends + 1};
      nodes_[second + 1] = {0, 0, ends};
      at = first;
      depth += 1;
    }
    // Above all members: outside. Of no members, NaN alone may be inside.
    nodes_[at] = {members.empty() ? kTreeKeyBelow : 0, column(split, missing), ends};
    places->push_back({outside, ends, depth + 3});
    places->push_back({inside, ends + 1, depth + 3});
  }

  const Trees& trees_;
  std::vector<TreeNode> nodes_;
  std::vector<size_t> leaves_;
  int64_t depth_ = 0;
};

enum class Aggregate : uint8_t { kAverage, kSum, kMin, kMax };

struct Combination {
  Aggregate aggregate = Aggregate::kSum;
  int64_t targets = 1;
  std::vector<double> base;  // one for each target, one for all, or none
};

Function combining_function(Aggregate aggregate) {
  return aggregate == Aggregate::kMin ? Function::kMin : aggregate == Aggregate::kMax ? Function::kMax : Function::kSum;
}

// What a leaf's values are before any weight.
float neutral(Aggregate aggregate) {
  constexpr auto kInfinite = std::numeric_limits<float>::infinity();
  return aggregate == Aggregate::kMin ? kInfinite : aggregate == Aggregate::kMax ? -kInfinite : 0;
}

// The leaves' values: one for each leaf with its target where none has more, else one for
// every target.
struct LeafValues {
  bool single = true;
  std::vector<float> values;
  std::vector<int64_t> targets;

  LeafValues(const Trees& trees, const FlatTrees& flat, const Combination& combination) {
    for (size_t leaf : flat.leaves()) single = single && trees.splits[leaf].weights.size() == 1;
    const auto width = static_cast<size_t>(single ? 1 : combination.targets);
    values.assign(flat.leaves().size() * width, neutral(combination.aggregate));
    for (size_t i = 0; i < flat.leaves().size(); ++i) {
      for (const Weight& weight : trees.splits[flat.leaves()[i]].weights) {
        float& value = values[i * width + (single ? 0 : static_cast<size_t>(weight.target))];
        if (combination.aggregate == Aggregate::kMin) value = std::min(value, weight.value);
        if (combination.aggregate == Aggregate::kMax) value = std::max(value, weight.value);
        if (neutral(combination.aggregate) == 0) value += weight.value;
        if (single) targets.push_back(weight.target);
      }
    }
  }
};

// X[rows, features] of a type that trees compare: float32 or float64.
ValueIndex compared_rows(Composer& c, NodeTranslation& node) {
  ValueIndex x = node.input(0);
  if (c.type(x) != DataType::kFloat64) x = c.cast(x, DataType::kFloat32);
  if (node.rank(0) == 1) x = c.reshape(x, {1, c.shape(x)[0]});
  c.require(c.rank(x) == 2 && c.shape(x)[1] > 0, "the input is not a matrix of rows and features");
  return x;
}

// The scores[rows, targets] of all trees together, in float32.
Result<ValueIndex> combined_scores(Composer& c, ValueIndex x, const Trees& trees, const Combination& combination) {
  FlatTrees flat(trees);
  FOLIOT_RETURN_IF_ERROR(flat.flatten());
  const LeafValues leaves(trees, flat, combination);
  const auto count = static_cast<int64_t>(flat.leaves().size());
  FOLIOT_RETURN_IF_ERROR(check_shape(DataType::kFloat32, {count, leaves.single ? 1 : combination.targets}));
  std::vector<ValueIndex> inputs{
      x, c.constant(flat.nodes()),
      c.constant(make_constant({count, static_cast<int64_t>(leaves.values.size()) / count}, std::span(leaves.values)))};
  if (leaves.single && combination.targets > 1) {
    inputs.push_back(c.constant(from_integers(DataType::kInt32, {count}, leaves.targets)));
  }
  Attributes attributes;
  attributes.set("function", combining_function(combination.aggregate));
  attributes.set("trees", static_cast<int64_t>(trees.roots.size()));
  attributes.set("depth", flat.depth());
  ValueIndex scores = c.emit(OperatorKind::kTreeEnsemble, std::move(inputs), std::move(attributes),
                             ValueType{DataType::kFloat32, {c.shape(x)[0], combination.targets}});
  if (combination.aggregate == Aggregate::kAverage) {
    scores = c.div(scores, c.like(scores, static_cast<double>(trees.roots.size())));
  }
  if (neutral(combination.aggregate) != 0) {  // targets that no leaf has a weight for
    const ValueIndex none = c.binary(Function::kEqual, scores, c.like(scores, neutral(combination.aggregate)));
    scores = c.where(none, c.like(scores, 0), scores);
  }
  if (std::ranges::any_of(combination.base, [](double value) { return value != 0; })) {
    const std::vector<float> base(combination.base.begin(), combination.base.end());
    scores = c.add(scores, c.constant(make_constant({1, static_cast<int64_t>(base.size())}, std::span(base))));
  }
  return scores;
}

Result<Aggregate> parse_aggregate(std::string_view name) {
  constexpr std::pair<std::string_view, Aggregate> kNames[] = {
      {"AVERAGE", Aggregate::kAverage}, {"SUM", Aggregate::kSum}, {"MIN", Aggregate::kMin}, {"MAX", Aggregate::kMax}};
  for (const auto& [candidate, aggregate] : kNames) {
    if (candidate == name) return aggregate;
  }
  return invalid("aggregate_function is '{}', not AVERAGE, SUM, MIN or MAX", name);
}

Status check_base(const std::vector<double>& base, int64_t targets) {
  if (base.empty() || base.size() == 1 || base.size() == static_cast<size_t>(targets)) return {};
  return invalid("attribute 'base_values' has {} values for {} targets or classes", base.size(), targets);
}

// As in onnxruntime, a single score has no transform but PROBIT.
bool transforms_score(PostTransform transform, int64_t targets) {
  return targets > 1 || transform == PostTransform::kProbit;
}

Status tree_regressor(NodeTranslation& node) {
  Composer c(node.builder());
  const ValueIndex x = compared_rows(c, node);
  FOLIOT_RETURN_IF_ERROR(c.status());
  Combination combination{.targets = node.integer("n_targets", 1), .base = {}};
  if (combination.targets < 1) return invalid("n_targets is {}, less than 1", combination.targets);
  FOLIOT_ASSIGN_OR_RETURN(combination.aggregate, parse_aggregate(node.text("aggregate_function", "SUM")));
  FOLIOT_ASSIGN_OR_RETURN(combination.base, reals(node, "base_values"));
  FOLIOT_RETURN_IF_ERROR(check_base(combination.base, combination.targets));
  FOLIOT_ASSIGN_OR_RETURN(const PostTransform transform, parse_post_transform(node.text("post_transform", "NONE")));
  FOLIOT_ASSIGN_OR_RETURN(const Trees trees, NumberedTrees(node, c.shape(x)[1]).read("target", combination.targets));
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex scores, combined_scores(c, x, trees, combination));
  return c.finish(node,
                  transforms_score(transform, combination.targets) ? post_transformed(c, scores, transform) : scores);
}

// Two classes of which only one has weights: the score of the other follows. Weights that
// are all positive are probabilities. As onnxruntime has it, since ONNX does not say.
Status one_score_for_two(NodeTranslation& node, Composer& c, ValueIndex score, PostTransform transform,
                         const std::vector<int64_t>& labels, bool probabilities) {
  if (transform == PostTransform::kProbit) {
    return Status::unimplemented("post_transform PROBIT is not supported for two classes of which one has weights");
  }
  FOLIOT_RETURN_IF_ERROR(c.finish(node, binary_labels(c, score, probabilities ? 0.5 : 0, labels[0], labels[1])));
  const bool logistic = transform == PostTransform::kLogistic;
  if (logistic) score = c.unary(Function::kSigmoid, score);
  const ValueIndex other = probabilities || logistic ? c.linear(score, -1, 1) : c.unary(Function::kNeg, score);
  return c.finish(node, c.concat({other, score}, 1), 1);
}

Status tree_classifier(NodeTranslation& node) {
  Composer c(node.builder());
  const ValueIndex x = compared_rows(c, node);
  FOLIOT_RETURN_IF_ERROR(c.status());
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<int64_t> labels, class_labels(node, "classlabels_int64s"));
  const auto classes = static_cast<int64_t>(labels.size());
  Combination combination{.targets = classes, .base = {}};
  FOLIOT_ASSIGN_OR_RETURN(combination.base, reals(node, "base_values"));
  FOLIOT_RETURN_IF_ERROR(check_base(combination.base, classes));
  FOLIOT_ASSIGN_OR_RETURN(const PostTransform transform, parse_post_transform(node.text("post_transform", "NONE")));
  FOLIOT_ASSIGN_OR_RETURN(Trees trees, NumberedTrees(node, c.shape(x)[1]).read("class", classes));
  std::set<int64_t> weighted;
  bool positive = true;
  for (Split& split : trees.splits) {
    for (const Weight& weight : split.weights) {
      weighted.insert(weight.target);
      positive = positive && weight.value >= 0;
    }
  }
  if (classes == 2 && weighted.size() == 1) {
    for (Split& split : trees.splits) {
      for (Weight& weight : split.weights) weight.target = 0;
    }
    combination.targets = 1;
    if (combination.base.size() == 2) combination.base = {combination.base[1]};
    FOLIOT_ASSIGN_OR_RETURN(const ValueIndex score, combined_scores(c, x, trees, combination));
    return one_score_for_two(node, c, score, transform, labels, positive);
  }
  if (classes > 2 && combination.base.size() == 1) combination.base.resize(labels.size(), 0);
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex scores, combined_scores(c, x, trees, combination));
  FOLIOT_RETURN_IF_ERROR(c.finish(node, labels_at(c, c.arg_max(scores, 1, false), labels)));
  return c.finish(node, post_transformed(c, scores, transform), 1);
}

Status tree_ensemble(NodeTranslation& node) {
  Composer c(node.builder());
  const ValueIndex x = compared_rows(c, node);
  FOLIOT_RETURN_IF_ERROR(c.status());
  Combination combination{.targets = node.integer("n_targets", 1), .base = {}};
  const int64_t aggregate = node.integer("aggregate_function", 1), transform = node.integer("post_transform", 0);
  if (combination.targets < 1) return invalid("n_targets is {}, less than 1", combination.targets);
  if (aggregate < 0 || aggregate > 3) return invalid("aggregate_function is {}, not in 0..3", aggregate);
  if (transform < 0 || transform > 4) return invalid("post_transform is {}, not in 0..4", transform);
  combination.aggregate = static_cast<Aggregate>(aggregate);
  FOLIOT_ASSIGN_OR_RETURN(const Trees trees, IndexedTrees(node, c.shape(x)[1]).read(combination.targets));
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex scores, combined_scores(c, x, trees, combination));
  const ValueIndex result = post_transformed(c, scores, static_cast<PostTransform>(transform));
  return c.finish(node, c.cast(result, node.value(0).type));
}

constexpr OnnxOperator kTreeEnsembleOperators[] = {
    {"TreeEnsembleRegressor", 1, 1, tree_regressor},
    {"TreeEnsembleClassifier", 1, 1, tree_classifier},
    {"TreeEnsemble", 1, 1, tree_ensemble},
};

}  // namespace

std::span<const OnnxOperator> tree_ensemble_operators() { return kTreeEnsembleOperators; }

}  // namespace foliot
