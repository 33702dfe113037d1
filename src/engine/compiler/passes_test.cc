#include "engine/compiler/passes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/compiler/test_model.h"
#include "engine/compiler/translate.h"

namespace foliot {
namespace {

Graph optimized_at(const TestModel& model, const std::vector<Shape>& shapes) {
  ConstantPool pool;
  auto graph = translate(model.model(), shapes, {}, pool);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  if (!graph.ok()) return {};
  optimize(*graph, pool);
  return std::move(graph).value();
}

std::vector<OperatorKind> kinds_of(const Graph& graph) {
  std::vector<OperatorKind> result;
  for (const Node& node : graph.nodes) result.push_back(node.kind);
  return result;
}

// Values are made before they are used.
void expect_runnable(const Graph& graph) {
  std::vector<bool> ready(graph.values.size(), false);
  for (size_t i = 0; i < ready.size(); ++i) ready[i] = graph.values[i].is_constant();
  for (ValueIndex input : graph.inputs) ready[input] = true;
  for (const Node& node : graph.nodes) {
    for (ValueIndex input : node.inputs) EXPECT_TRUE(input == kNoValue || ready[input]) << node.name;
    for (ValueIndex output : node.outputs) ready[output] = true;
  }
  for (ValueIndex output : graph.outputs) EXPECT_TRUE(ready[output]);
}

void add_batch_normalization(TestModel& model, const std::string& x, const std::string& y, int64_t channels) {
  model.weights(y + "_scale", {channels}, 0.1, 1).weights(y + "_bias", {channels});
  model.weights(y + "_mean", {channels}).weights(y + "_variance", {channels}, 0.01, 1);
  model.node("BatchNormalization", {x, y + "_scale", y + "_bias", y + "_mean", y + "_variance"}, y);
}

TEST(PassesTest, FusesAResidualBlock) {
  TestModel model;
  model.input("x", {fixed(1), fixed(4), fixed(5), fixed(5)}).output("y");
  model.weights("w", {4, 4, 1, 1}).weights("v", {4, 4, 1, 1});
  model.node("Conv", {"x", "w"}, "a");
  add_batch_normalization(model, "a", "b", 4);
  model.node("Relu", {"b"}, "c").node("Conv", {"c", "v"}, "d");
  add_batch_normalization(model, "d", "e", 4);
  model.node("Add", {"e", "x"}, "f").node("Relu", {"f"}, "y");
  const Graph graph = optimized_at(model, {{1, 4, 5, 5}});
  ASSERT_EQ(kinds_of(graph), (std::vector{OperatorKind::kConvolution, OperatorKind::kConvolution}));
  expect_runnable(graph);
  const Node& last = graph.nodes[1];
  ASSERT_EQ(last.post_operations.size(), 2u);
  EXPECT_EQ(last.post_operations[0].function, Function::kAdd);
  EXPECT_EQ(last.inputs[last.post_operations[0].input], graph.inputs[0]);
  EXPECT_EQ(last.post_operations[1].function, Function::kRelu);
}

TEST(PassesTest, LetsTheLaterOfTwoConvolutionsTakeTheSum) {
  TestModel model;
  model.input("x", {fixed(1), fixed(4), fixed(5), fixed(5)}).output("y");
  model.weights("w", {4, 4, 1, 1}).weights("v", {4, 4, 1, 1});
  model.node("Conv", {"x", "w"}, "a").node("Conv", {"x", "v"}, "b").node("Add", {"a", "b"}, "y");
  const Graph graph = optimized_at(model, {{1, 4, 5, 5}});
  ASSERT_EQ(graph.nodes.size(), 2u);
  expect_runnable(graph);
  EXPECT_TRUE(graph.nodes[0].post_operations.empty());
  EXPECT_EQ(graph.nodes[1].post_operations.size(), 1u);
}

TEST(PassesTest, KeepsAResultThatIsUsedTwice) {
  TestModel model;
  model.input("x", {fixed(1), fixed(4), fixed(5), fixed(5)}).weights("w", {4, 4, 1, 1}).output("y").output("a");
  model.node("Conv", {"x", "w"}, "a").node("Relu", {"a"}, "y");
  EXPECT_EQ(optimized_at(model, {{1, 4, 5, 5}}).nodes.size(), 2u);
}

TEST(PassesTest, FoldsScalesPerChannelIntoConvolutions) {
  TestModel model;
  model.input("x", {fixed(1), fixed(2), fixed(3), fixed(3)}).output("y").output("z");
  model.constant("w", make_constant({2, 2, 1, 1}, std::vector<float>{1, 2, 3, 4}));
  model.constant("scale", make_constant({2, 1, 1}, std::vector<float>{10, 100}));
  model.constant("shift", make_constant({1, 2, 1, 1}, std::vector<float>{5, 6}));
  model.node("Conv", {"x", "w"}, "a").node("Mul", {"a", "scale"}, "b").node("Add", {"shift", "b"}, "y");
  // Along another dimension than the channels nothing can be folded.
  model.constant("row", make_constant({2}, std::vector<float>{1, 2})).weights("u", {2, 2, 1, 2});
  model.node("Conv", {"x", "u"}, "c").node("Mul", {"c", "row"}, "z");
  const Graph graph = optimized_at(model, {{1, 2, 3, 3}});
  ASSERT_EQ(graph.nodes.size(), 2u);
  const Node& node = graph.nodes[0];
  const auto values_of = [&](ValueIndex index) {
    return to_doubles({DataType::kFloat32, graph.values[index].shape, graph.values[index].constant});
  };
  EXPECT_EQ(values_of(node.inputs[1]), (std::vector<double>{10, 20, 300, 400}));
  EXPECT_EQ(values_of(node.inputs[2]), (std::vector<double>{5, 6}));
  EXPECT_TRUE(node.post_operations.empty());
  EXPECT_EQ(graph.nodes[1].post_operations.size(), 1u);
}

// Transposed convolutions have their channels in groups, and take in nothing else.
TEST(PassesTest, FoldsScalesPerChannelIntoTransposedConvolutions) {
  TestModel model;
  model.input("x", {fixed(1), fixed(4), fixed(3), fixed(3)}).output("y");
  model.constant("w", make_constant({4, 2, 1, 1}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  model.constant("scale", make_constant({4, 1, 1}, std::vector<float>{1, 10, 100, 1000}));
  model.constant("shift", make_constant({1, 4, 1, 1}, std::vector<float>{5, 6, 7, 8}));
  model.node("ConvTranspose", {"x", "w"}, "a", {{"group", int64_t{2}}});
  model.node("Mul", {"a", "scale"}, "b").node("Add", {"shift", "b"}, "c").node("Relu", {"c"}, "y");
  const Graph graph = optimized_at(model, {{1, 4, 3, 3}});
  ASSERT_EQ(kinds_of(graph), (std::vector{OperatorKind::kConvolutionTranspose, OperatorKind::kUnary}));
  const auto values_of = [&](ValueIndex index) {
    return to_doubles({DataType::kFloat32, graph.values[index].shape, graph.values[index].constant});
  };
  const Node& node = graph.nodes[0];
  EXPECT_EQ(values_of(node.inputs[1]), (std::vector<double>{1, 20, 3, 40, 500, 6000, 700, 8000}));
  EXPECT_EQ(values_of(node.inputs[2]), (std::vector<double>{5, 6, 7, 8}));
  EXPECT_TRUE(node.post_operations.empty());
}

TEST(PassesTest, SplitsTransposedConvolutionsWhoseWindowsMeet) {
  TestModel model;
  model.input("x", {fixed(1), fixed(1), fixed(3), fixed(4)}).output("y");
  model.constant("w", make_constant({1, 2, 2, 2}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  model.constant("b", make_constant({2}, std::vector<float>{10, 20}));
  model.node("ConvTranspose", {"x", "w", "b"}, "a", {{"strides", std::vector<int64_t>{2, 2}}});
  model.node("Relu", {"a"}, "r").node("Erf", {"r"}, "y");
  const Graph graph = optimized_at(model, {{1, 1, 3, 4}});
  ASSERT_EQ(kinds_of(graph), (std::vector{OperatorKind::kConvolution, OperatorKind::kDepthToSpace}));
  expect_runnable(graph);
  const auto values_of = [&](ValueIndex index) {
    return to_doubles({DataType::kFloat32, graph.values[index].shape, graph.values[index].constant});
  };
  const Node& convolution = graph.nodes[0];
  EXPECT_EQ(graph.values[convolution.inputs[1]].shape, (Shape{8, 1, 1, 1}));
  EXPECT_EQ(values_of(convolution.inputs[1]), (std::vector<double>{1, 5, 2, 6, 3, 7, 4, 8}));
  EXPECT_EQ(values_of(convolution.inputs[2]), (std::vector<double>{10, 20, 10, 20, 10, 20, 10, 20}));
  ASSERT_EQ(convolution.post_operations.size(), 2u);
  EXPECT_EQ(convolution.post_operations[0].function, Function::kRelu);
  EXPECT_EQ(convolution.post_operations[1].function, Function::kErf);
  EXPECT_EQ(graph.values[graph.nodes[1].outputs[0]].shape, (Shape{1, 2, 6, 8}));
}

// The two have the same bytes of weights, which the pool knows as one constant.
TEST(PassesTest, SplitsEqualWeightsOfOtherShapesByTheirOwn) {
  TestModel model;
  model.input("x", {fixed(1), fixed(2), fixed(3), fixed(3)}).output("y");
  model.constant("v", make_constant({2, 4, 2, 2}, std::vector<float>(32, 1)));
  model.constant("w", make_constant({4, 2, 2, 2}, std::vector<float>(32, 1)));
  model.node("ConvTranspose", {"x", "v"}, "a", {{"strides", std::vector<int64_t>{2, 2}}});
  model.node("ConvTranspose", {"a", "w"}, "y", {{"strides", std::vector<int64_t>{2, 2}}});
  const Graph graph = optimized_at(model, {{1, 2, 3, 3}});
  ASSERT_EQ(graph.nodes.size(), 4u);
  EXPECT_EQ(graph.values[graph.nodes[0].inputs[1]].shape, (Shape{16, 2, 1, 1}));
  EXPECT_EQ(graph.values[graph.nodes[2].inputs[1]].shape, (Shape{8, 4, 1, 1}));
}

TEST(PassesTest, FunctionsThatOthersReadStayBehindASplitConvolution) {
  TestModel model;
  model.input("x", {fixed(1), fixed(2), fixed(3), fixed(3)}).output("y").output("a");
  model.weights("w", {2, 3, 2, 2});
  model.node("ConvTranspose", {"x", "w"}, "a", {{"strides", std::vector<int64_t>{2, 2}}}).node("Relu", {"a"}, "y");
  const Graph graph = optimized_at(model, {{1, 2, 3, 3}});
  EXPECT_EQ(kinds_of(graph),
            (std::vector{OperatorKind::kConvolution, OperatorKind::kDepthToSpace, OperatorKind::kUnary}));
  expect_runnable(graph);
}

TEST(PassesTest, OtherTransposedConvolutionsStayWhole) {
  using Attributes = std::map<std::string, OnnxAttribute, std::less<>>;
  const std::vector<int64_t> two{2, 2};
  for (const Attributes& attributes : std::vector<Attributes>{
           {{"strides", std::vector<int64_t>{1, 1}}},
           {{"strides", std::vector<int64_t>{2, 3}}},
           {{"strides", two}, {"dilations", two}},
           {{"strides", two}, {"pads", std::vector<int64_t>{1, 0, 0, 0}}},
           {{"strides", two}, {"output_padding", std::vector<int64_t>{1, 1}}},
           {{"strides", two}, {"group", int64_t{2}}},
       }) {
    TestModel model;
    model.input("x", {fixed(1), fixed(2), fixed(3), fixed(3)}).output("y").weights("w", {2, 3, 2, 2});
    model.node("ConvTranspose", {"x", "w"}, "y", attributes);
    EXPECT_EQ(kinds_of(optimized_at(model, {{1, 2, 3, 3}})), (std::vector{OperatorKind::kConvolutionTranspose}));
  }
}

TEST(PassesTest, RecognisesLayerNormAndGelu) {
  TestModel model(13);
  model.input("x", {fixed(2), fixed(3), fixed(8)}).output("y");
  model.scalar("two", 2).scalar("epsilon", 1e-6f).scalar("root", 1.4142135f).scalar("one", 1).scalar("half", 0.5);
  model.weights("scale", {8}, 0.1, 1).weights("bias", {8});
  const std::map<std::string, OnnxAttribute, std::less<>> last{{"axes", std::vector<int64_t>{-1}}};
  model.node("ReduceMean", {"x"}, "mean", last).node("Sub", {"x", "mean"}, "centred");
  model.node("Pow", {"centred", "two"}, "squares").node("ReduceMean", {"squares"}, "variance", last);
  model.node("Add", {"variance", "epsilon"}, "spread").node("Sqrt", {"spread"}, "deviation");
  model.node("Div", {"centred", "deviation"}, "normal").node("Mul", {"normal", "scale"}, "scaled");
  model.node("Add", {"scaled", "bias"}, "n").node("Div", {"n", "root"}, "small").node("Erf", {"small"}, "error");
  model.node("Add", {"error", "one"}, "gate").node("Mul", {"n", "gate"}, "gated").node("Mul", {"gated", "half"}, "y");
  const Graph graph = optimized_at(model, {{2, 3, 8}});
  ASSERT_EQ(kinds_of(graph), (std::vector{OperatorKind::kLayerNorm, OperatorKind::kUnary}));
  EXPECT_EQ(graph.nodes[0].inputs.size(), 3u);
  EXPECT_EQ(graph.nodes[0].attributes.integer("axis"), 2);
  EXPECT_EQ(graph.nodes[1].attributes.function(), Function::kGelu);
}

TEST(PassesTest, RecognisesGroupNorm) {
  for (const float scale : {1.F, 2.F}) {  // of the groups, which torch leaves at one
    TestModel model(17);
    model.input("x", {fixed(2), fixed(6), fixed(3), fixed(5)}).output("y");
    model.integers("groups", {2, 2, -1}).integers("channels", {2, 6, 3, 5});
    model.constant("ones", make_constant({2}, std::vector<float>{1, scale}));
    model.constant("zeros", make_constant({2}, std::vector<float>{0, 0}));
    model.weights("factor", {6, 1, 1}).weights("shift", {1, 6, 1, 1});
    model.node("Reshape", {"x", "groups"}, "a").node("InstanceNormalization", {"a", "ones", "zeros"}, "b");
    model.node("Reshape", {"b", "channels"}, "c").node("Mul", {"c", "factor"}, "d").node("Add", {"shift", "d"}, "y");
    const Graph graph = optimized_at(model, {{2, 6, 3, 5}});
    if (scale != 1) {
      EXPECT_EQ(std::ranges::count(graph.nodes, OperatorKind::kBinary, &Node::kind), 2);
      continue;
    }
    ASSERT_EQ(kinds_of(graph), (std::vector{OperatorKind::kReshape, OperatorKind::kLayerNorm, OperatorKind::kReshape}));
    const Node& norm = graph.nodes[1];
    EXPECT_EQ(graph.values[norm.inputs[0]].shape, (Shape{2, 2, 3, 15}));
    EXPECT_EQ(graph.values[norm.outputs[0]].shape, (Shape{2, 2, 3, 15}));
    for (const size_t parameter : {1, 2}) EXPECT_EQ(graph.values[norm.inputs[parameter]].shape, (Shape{2, 3, 1}));
    EXPECT_EQ(graph.values[graph.outputs[0]].shape, (Shape{2, 6, 3, 5}));
  }
}

TEST(PassesTest, MovesTranspositionAndScaleOfAttentionIntoTheProduct) {
  TestModel model;
  model.input("q", {fixed(1), fixed(2), fixed(5), fixed(4)}).input("k", {fixed(1), fixed(5), fixed(2), fixed(4)});
  model.scalar("root", 2).output("y");
  model.node("Transpose", {"k"}, "turned", {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  model.node("MatMul", {"q", "turned"}, "scores").node("Div", {"scores", "root"}, "y");
  const Graph graph = optimized_at(model, {{1, 2, 5, 4}, {1, 5, 2, 4}});
  ASSERT_EQ(kinds_of(graph), (std::vector{OperatorKind::kTranspose, OperatorKind::kMatMul}));
  EXPECT_EQ(graph.values[graph.nodes[0].outputs[0]].shape, (Shape{1, 2, 5, 4}));
  EXPECT_EQ(graph.nodes[1].attributes.integer("transpose_b"), 1);
  EXPECT_EQ(graph.nodes[1].attributes.real("alpha"), 0.5);
}

TEST(PassesTest, RecognisesHardSwish) {
  TestModel model;
  model.input("x", {fixed(1), fixed(4)}).output("y");
  model.scalar("three", 3).scalar("six", 6).scalar("zero", 0);
  model.node("Add", {"x", "three"}, "a").node("Clip", {"a", "zero", "six"}, "b").node("Mul", {"x", "b"}, "c");
  model.node("Div", {"c", "six"}, "y");
  const Graph graph = optimized_at(model, {{1, 4}});
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.nodes[0].attributes.function(), Function::kHardSwish);
}

TEST(PassesTest, FusesSilu) {
  TestModel model;
  model.input("x", {fixed(1), fixed(4)}).output("y");
  model.node("Sigmoid", {"x"}, "gate").node("Mul", {"gate", "x"}, "y");
  const Graph graph = optimized_at(model, {{1, 4}});
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.nodes[0].attributes.function(), Function::kSilu);
}

// Attention of 128 queries over 128 keys, before its result is read.
struct AttentionModel {
  TestModel model;
  explicit AttentionModel(int64_t mask_keys = 128, int64_t queries = 128) {
    model.input("q", {fixed(1), fixed(2), fixed(queries), fixed(4)});
    model.input("k", {fixed(1), fixed(2), fixed(128), fixed(4)}).input("v", {fixed(1), fixed(2), fixed(128), fixed(4)});
    model.input("mask", {fixed(1), fixed(1), fixed(1), fixed(mask_keys)}).scalar("half", 0.5).output("y");
    model.node("Mul", {"q", "half"}, "small")
        .node("Transpose", {"k"}, "turned", {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
    model.node("Mul", {"turned", "half"}, "smaller").node("MatMul", {"small", "smaller"}, "scores");
    model.node("Add", {"scores", "mask"}, "seen");
  }
  Graph optimized(const char* softmax_of, int64_t mask_keys = 128, int64_t queries = 128, Narrowing narrowing = {}) {
    model.node("Softmax", {softmax_of}, "weights", {{"axis", int64_t{-1}}}).node("MatMul", {"weights", "v"}, "y");
    ConstantPool pool;
    auto graph =
        translate(model.model(), {{1, 2, queries, 4}, {1, 2, 128, 4}, {1, 2, 128, 4}, {1, 1, 1, mask_keys}}, {}, pool);
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    if (!graph.ok()) return {};
    optimize(*graph, pool, narrowing);
    return std::move(graph).value();
  }
};

TEST(PassesTest, FusesAttentionWithScalesAndMask) {
  const Graph graph = AttentionModel().optimized("seen");
  ASSERT_EQ(kinds_of(graph), std::vector{OperatorKind::kAttention});
  const Node& node = graph.nodes[0];
  EXPECT_EQ(node.inputs, graph.inputs);
  EXPECT_EQ(node.attributes.real("alpha"), 0.25);
  EXPECT_EQ(node.attributes.integer("transpose_k"), 0);
  expect_runnable(graph);
}

TEST(PassesTest, FusesAttentionWithoutMask) {
  const Graph graph = AttentionModel().optimized("scores");
  ASSERT_EQ(kinds_of(graph), std::vector{OperatorKind::kAttention});
  EXPECT_EQ(graph.nodes[0].inputs.size(), 3u);
}

TEST(PassesTest, LeavesAttentionThatDoesNotFit) {
  const auto kinds = [](const Graph& graph) { return kinds_of(graph); };
  const std::vector apart{OperatorKind::kMatMul, OperatorKind::kSoftmax, OperatorKind::kMatMul};
  EXPECT_EQ(kinds(AttentionModel(1).optimized("seen", 1)), apart) << "one number for all keys";
  EXPECT_EQ(kinds(AttentionModel(128, 15).optimized("seen", 128, 15)), apart) << "few queries";
  EXPECT_EQ(kinds(AttentionModel(128, 127).optimized("seen", 128, 127)), apart) << "few scores";
  AttentionModel read_twice;
  read_twice.model.output("seen");
  EXPECT_EQ(kinds(read_twice.optimized("seen")), apart) << "scores are an output";
  const Graph narrow = AttentionModel().optimized("seen", 128, 128, {.bfloat16 = true});
  EXPECT_EQ(std::ranges::find(narrow.nodes, OperatorKind::kAttention, &Node::kind), narrow.nodes.end());
}

}  // namespace
}  // namespace foliot
