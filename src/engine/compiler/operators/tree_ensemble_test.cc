// Trees of ai.onnx.ml: what becomes of every comparison, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "engine/compiler/passes.h"
#include "engine/compiler/test_model.h"
#include "engine/compiler/translate.h"
#include "engine/device/tree_node.h"

namespace foliot {
namespace {

using Numbers = std::vector<int64_t>;
using Floats = std::vector<float>;
using Names = std::vector<std::string>;
using AttributeMap = std::map<std::string, OnnxAttribute, std::less<>>;

constexpr float kNothing = std::numeric_limits<float>::quiet_NaN();

// One tree of two leaves: feature 1 of 3 against 0.5; leaf 1 adds 10, leaf 2 adds 20.
AttributeMap stump(const std::string& mode = "BRANCH_LEQ") {
  return {{"nodes_treeids", Numbers{0, 0, 0}},      {"nodes_nodeids", Numbers{0, 1, 2}},
          {"nodes_featureids", Numbers{1, 0, 0}},   {"nodes_modes", Names{mode, "LEAF", "LEAF"}},
          {"nodes_values", Floats{0.5F, 0, 0}},     {"nodes_truenodeids", Numbers{1, 0, 0}},
          {"nodes_falsenodeids", Numbers{2, 0, 0}}, {"target_treeids", Numbers{0, 0}},
          {"target_nodeids", Numbers{1, 2}},        {"target_ids", Numbers{0, 0}},
          {"target_weights", Floats{10, 20}}};
}

Result<Graph> regressor(AttributeMap attributes, const char* type = "TreeEnsembleRegressor") {
  TestModel model;
  model.input("x", {fixed(2), fixed(3)}).output("y").node(type, {"x"}, "y", std::move(attributes));
  model.model().nodes[0].domain = "ai.onnx.ml";
  ConstantPool pool;
  return translate(model.model(), {{2, 3}}, {}, pool);
}

template <typename T>
std::vector<T> elements(const Value& value) {
  std::vector<T> result(value.constant->size() / sizeof(T));
  std::memcpy(result.data(), value.constant->data(), value.constant->size());
  return result;
}

// Where the only tree of a graph leads a row whose features are all `value`.
float leaf_value(const Graph& graph, float value) {
  const Node& ensemble = graph.nodes.at(0);
  const auto nodes = elements<TreeNode>(graph.values[ensemble.inputs[1]]);
  size_t at = 0;
  for (int64_t step = 0; step < ensemble.attributes.integer("depth"); ++step) {
    const TreeNode& node = nodes.at(at);
    const uint64_t nothing = node.column % 2 == 0 ? kTreeKeyAbove : kTreeKeyBelow;
    at = node.child + ((std::isnan(value) ? nothing : tree_key(value)) <= node.limit ? 1 : 0);
  }
  EXPECT_EQ(nodes.at(at).child, at) << "not a leaf";
  return elements<float>(graph.values[ensemble.inputs[2]]).at(nodes[at].column);
}

TEST(TreeEnsembleTest, ComparesAsOnnxDoes) {
  struct Comparison {
    const char* mode;
    float below, equal, above;  // what a value there gives
  };
  for (const Comparison& expected : {Comparison{"BRANCH_LEQ", 10, 10, 20}, Comparison{"BRANCH_LT", 10, 20, 20},
                                     Comparison{"BRANCH_GTE", 20, 10, 10}, Comparison{"BRANCH_GT", 20, 20, 10},
                                     Comparison{"BRANCH_EQ", 20, 10, 20}, Comparison{"BRANCH_NEQ", 10, 20, 10}}) {
    SCOPED_TRACE(expected.mode);
    for (const int64_t missing : {0, 1}) {
      AttributeMap attributes = stump(expected.mode);
      attributes["nodes_missing_value_tracks_true"] = Numbers{missing, 0, 0};
      const auto graph = regressor(attributes);
      ASSERT_TRUE(graph.ok()) << graph.status().message();
      EXPECT_EQ(leaf_value(*graph, std::nextafterf(0.5F, 0)), expected.below);
      EXPECT_EQ(leaf_value(*graph, 0.5F), expected.equal);
      EXPECT_EQ(leaf_value(*graph, std::nextafterf(0.5F, 1)), expected.above);
      const bool unequal = std::string(expected.mode) == "BRANCH_NEQ";
      EXPECT_EQ(leaf_value(*graph, kNothing), missing != 0 || unequal ? 10 : 20);
    }
  }
}

TEST(TreeEnsembleTest, NothingIsBelowTheLeast) {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  AttributeMap attributes = stump("BRANCH_LT");
  attributes["nodes_values"] = Floats{kLeast, 0, 0};
  const auto graph = regressor(attributes);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(leaf_value(*graph, kLeast), 20);
}

AttributeMap indexed_stump() {
  const auto floats = [](Floats values) {
    return make_constant({static_cast<int64_t>(values.size())}, std::span<const float>(values));
  };
  return {{"tree_roots", Numbers{0}},
          {"nodes_featureids", Numbers{1}},
          {"nodes_modes", from_integers(DataType::kUint8, {1}, Numbers{6})},
          {"nodes_splits", floats({0})},
          {"nodes_truenodeids", Numbers{0}},
          {"nodes_falsenodeids", Numbers{1}},
          {"nodes_trueleafs", Numbers{1}},
          {"nodes_falseleafs", Numbers{1}},
          {"membership_values", floats({1, 5, 3, kNothing})},
          {"leaf_targetids", Numbers{0, 0}},
          {"leaf_weights", floats({10, 20})}};
}

TEST(TreeEnsembleTest, FindsMembersOfASet) {
  for (const int64_t missing : {0, 1}) {
    AttributeMap attributes = indexed_stump();
    attributes["nodes_missing_value_tracks_true"] = Numbers{missing};
    const auto graph = regressor(attributes, "TreeEnsemble");
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    for (const float member : {1.0F, 3.0F, 5.0F}) EXPECT_EQ(leaf_value(*graph, member), 10);
    for (const float other : {0.0F, 2.0F, 6.0F}) EXPECT_EQ(leaf_value(*graph, other), 20);
    EXPECT_EQ(leaf_value(*graph, kNothing), missing != 0 ? 10 : 20);
  }
}

struct Damage {
  const char* attribute;
  OnnxAttribute value;
  std::vector<const char*> parts;  // of the message
};

void expect_refused(const AttributeMap& sound, const char* type, const std::vector<Damage>& damages) {
  const auto intact = regressor(sound, type);
  EXPECT_TRUE(intact.ok()) << intact.status().message();
  for (const auto& [attribute, value, parts] : damages) {
    AttributeMap attributes = sound;
    attributes[attribute] = value;
    const auto graph = regressor(attributes, type);
    ASSERT_FALSE(graph.ok()) << attribute << " " << parts[0];
    EXPECT_EQ(graph.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(graph.status().message().find("node_y"), std::string::npos) << graph.status().message();
    for (const char* part : parts) {
      EXPECT_NE(graph.status().message().find(part), std::string::npos) << part << ": " << graph.status().message();
    }
  }
}

TEST(TreeEnsembleTest, NamesWhatIsWrongWithATree) {
  const std::vector<Damage> damages{
      {"nodes_values", Floats{kNothing, 0, 0}, {"node 0 of tree 0", "NaN"}},
      {"nodes_values", Floats{0.5F, 0}, {"'nodes_values' has 2 values instead of 3"}},
      {"nodes_values", Floats{}, {"'nodes_values' has 0 values"}},
      {"nodes_treeids", Numbers{0, 0}, {"'nodes_treeids' has 2 values"}},
      {"nodes_featureids", Numbers{1, 0}, {"'nodes_featureids' has 2 values"}},
      {"nodes_featureids", Numbers{3, 0, 0}, {"node 0 of tree 0", "feature 3", "3 features"}},
      {"nodes_featureids", Numbers{-1, 0, 0}, {"feature -1"}},
      {"nodes_modes", Names{"BRANCH_LEQ", "LEAF"}, {"'nodes_modes' has 2 values"}},
      {"nodes_modes", Names{"BRANCH", "LEAF", "LEAF"}, {"node 0 of tree 0", "'BRANCH'"}},
      {"nodes_nodeids", Numbers{}, {"'nodes_nodeids' is missing"}},
      {"nodes_nodeids", Numbers{0, 1, 1}, {"node 1 of tree 0 stands there twice"}},
      {"nodes_truenodeids", Numbers{7, 0, 0}, {"node 0 of tree 0 leads to node 7"}},
      {"nodes_truenodeids", Numbers{0, 0, 0}, {"position 0", "own ancestor"}},
      {"nodes_truenodeids", Numbers{2, 0, 0}, {"node 0 of tree 0 and node 1 of tree 0 are both roots"}},
      {"nodes_missing_value_tracks_true", Numbers{1}, {"'nodes_missing_value_tracks_true' has 1 values"}},
      {"target_ids", Numbers{0, 1}, {"'target_ids' has 1", "0..0"}},
      {"target_ids", Numbers{0, -1}, {"'target_ids' has -1"}},
      {"target_ids", Numbers{0}, {"'target_ids' has 1 values instead of 2"}},
      {"target_nodeids", Numbers{1, 9}, {"node 9 of tree 0"}},
      {"target_weights", Floats{10}, {"'target_weights' has 1 values"}},
      {"target_weights", Floats{10, kNothing}, {"node 2 of tree 0", "NaN"}},
      {"base_values", Floats{1, 2}, {"'base_values' has 2 values"}},
      {"n_targets", int64_t{0}, {"n_targets is 0"}},
      {"aggregate_function", std::string("MEDIAN"), {"MEDIAN"}},
      {"post_transform", std::string("TANH"), {"TANH"}},
  };
  expect_refused(stump(), "TreeEnsembleRegressor", damages);
}

TEST(TreeEnsembleTest, NamesWhatIsWrongWithAnIndexedTree) {
  const Constant no_values = make_constant({0}, std::span<const float>());
  const std::vector<Damage> damages{
      {"tree_roots", Numbers{}, {"'tree_roots' is missing"}},
      {"tree_roots", Numbers{1}, {"'tree_roots' has 1, but there are 1"}},
      {"nodes_featureids", Numbers{}, {"'nodes_featureids' is missing"}},
      {"nodes_featureids", Numbers{3}, {"node 0 compares feature 3"}},
      {"nodes_truenodeids", Numbers{2}, {"'nodes_truenodeids' has 2, but there are 2"}},
      {"nodes_trueleafs", Numbers{0}, {"own ancestor"}},
      {"nodes_modes", from_integers(DataType::kUint8, {1}, Numbers{7}), {"node 0 has the unknown mode 7"}},
      {"nodes_splits", no_values, {"'nodes_splits' has 0 values"}},
      {"membership_values", no_values, {"no set for node 0"}},
      {"leaf_targetids", Numbers{0, 4}, {"'leaf_targetids' has 4"}},
      {"leaf_targetids", Numbers{0}, {"'leaf_weights' has 2 values instead of 1"}},
      {"aggregate_function", int64_t{9}, {"aggregate_function is 9"}},
  };
  expect_refused(indexed_stump(), "TreeEnsemble", damages);
}

// A node whose false child is the one before it, far down: only from the root is it seen.
TEST(TreeEnsembleTest, RefusesANodeThatIsItsOwnAncestor) {
  AttributeMap attributes = stump();
  attributes["nodes_nodeids"] = Numbers{0, 1, 2, 3, 4};
  attributes["nodes_treeids"] = Numbers{0, 0, 0, 0, 0};
  attributes["nodes_featureids"] = Numbers{0, 0, 0, 0, 0};
  attributes["nodes_modes"] = Names{"BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "BRANCH_LEQ", "LEAF"};
  attributes["nodes_values"] = Floats{0, 0, 0, 0, 0};
  attributes["nodes_truenodeids"] = Numbers{1, 0, 3, 4, 0};
  attributes["nodes_falsenodeids"] = Numbers{2, 0, 3, 2, 0};
  const auto graph = regressor(attributes);
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find("own ancestor"), std::string::npos) << graph.status().message();
}

TEST(TreeEnsembleTest, RefusesATreeWithoutARoot) {
  AttributeMap attributes = stump();
  attributes["nodes_modes"] = Names{"BRANCH_LEQ", "BRANCH_LEQ", "BRANCH_LEQ"};
  attributes["nodes_truenodeids"] = Numbers{1, 2, 0};
  attributes["nodes_falsenodeids"] = Numbers{1, 2, 0};
  const auto graph = regressor(attributes);
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find("tree 0 has no root"), std::string::npos) << graph.status().message();
}

// Nodes 0, 2, 4, ... each lead to a leaf and to the next.
AttributeMap long_tree(int64_t levels) {
  AttributeMap attributes = stump();
  const auto count = static_cast<size_t>(2 * levels + 1);
  Numbers ids, on_true, on_false, zeros(count, 0);
  Names modes;
  for (int64_t i = 0; i < 2 * levels + 1; ++i) {
    const bool leaf = i % 2 == 1 || i == 2 * levels;
    ids.push_back(i);
    modes.emplace_back(leaf ? "LEAF" : "BRANCH_LEQ");
    on_true.push_back(leaf ? 0 : i + 1);
    on_false.push_back(leaf ? 0 : i + 2);
  }
  attributes["nodes_nodeids"] = ids;
  attributes["nodes_treeids"] = attributes["nodes_featureids"] = zeros;
  attributes["nodes_modes"] = modes;
  attributes["nodes_values"] = Floats(count, 0);
  attributes["nodes_truenodeids"] = on_true;
  attributes["nodes_falsenodeids"] = on_false;
  return attributes;
}

TEST(TreeEnsembleTest, RefusesTreesThatAreTooDeep) {
  EXPECT_TRUE(regressor(long_tree(kTreeDepthMax)).ok());
  const auto graph = regressor(long_tree(kTreeDepthMax + 1));
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find("4096"), std::string::npos) << graph.status().message();
}

TEST(TreeEnsembleTest, RefusesTooManyNodes) {
  AttributeMap attributes = stump();
  attributes["nodes_nodeids"] = Numbers(static_cast<size_t>(kTreeNodesMax) + 1, 0);
  const auto graph = regressor(attributes);
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().code(), StatusCode::kResourceExhausted);
  for (const char* part : {"10000001", "10000000"}) {
    EXPECT_NE(graph.status().message().find(part), std::string::npos) << graph.status().message();
  }
}

TEST(TreeEnsembleTest, NamesClassesThatThereAreNot) {
  AttributeMap attributes = stump();
  for (const char* list : {"treeids", "nodeids", "ids", "weights"}) {
    attributes[std::string("class_") + list] = attributes[std::string("target_") + list];
  }
  attributes["classlabels_int64s"] = Numbers{5, 6, 7};
  attributes["class_ids"] = Numbers{0, 3};
  const auto graph = regressor(attributes, "TreeEnsembleClassifier");
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find("'class_ids' has 3, which is not in 0..2"), std::string::npos)
      << graph.status().message();
  attributes.erase("classlabels_int64s");
  const auto without = regressor(attributes, "TreeEnsembleClassifier");
  ASSERT_FALSE(without.ok());
  EXPECT_NE(without.status().message().find("classlabels_int64s"), std::string::npos) << without.status().message();
}

}  // namespace
}  // namespace foliot
