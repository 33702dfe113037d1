#include "engine/compiler/translate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/compiler/passes.h"
#include "engine/compiler/test_model.h"

namespace foliot {
namespace {

using Inputs = std::vector<std::string>;
using Integers = std::vector<int64_t>;

Result<Graph> translated(const TestModel& model, const std::vector<Shape>& shapes, Rebatch rebatch = {}) {
  ConstantPool pool;
  auto graph = translate(model.model(), shapes, rebatch, pool);
  if (graph.ok()) remove_dead_code(*graph);
  return graph;
}

Graph must(Result<Graph> graph) {
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? std::move(graph).value() : Graph();
}

Shape output_shape(const Graph& graph, size_t i = 0) { return graph.values[graph.outputs.at(i)].shape; }

TEST(TranslateTest, FoldsTheShapeArithmeticOfExporters) {
  TestModel model(13);
  model.input("x", {open("batch"), fixed(6), fixed(4)}).output("y");
  model.integers("zero", {0}).integers("rest", {2, 3, 4});
  model.node("Shape", {"x"}, "shape").node("Gather", {"shape", "zero"}, "rows", {{"axis", int64_t{0}}});
  model.node("Concat", {"rows", "rest"}, "target", {{"axis", int64_t{0}}}).node("Reshape", {"x", "target"}, "y");
  const Graph graph = must(translated(model, {{5, 6, 4}}));
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.nodes[0].kind, OperatorKind::kReshape);
  EXPECT_EQ(output_shape(graph), (Shape{5, 2, 3, 4}));
}

TEST(TranslateTest, NamesTheOperatorThatIsUnknown) {
  TestModel model;
  model.input("x", {fixed(1)}).output("y").node("FancyThing", {"x"}, "y");
  model.model().nodes[0].domain = "com.example";
  model.model().opsets["com.example"] = 3;
  const auto graph = translated(model, {{1}});
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().code(), StatusCode::kUnimplemented);
  for (const char* part : {"node_y", "FancyThing", "com.example", "3"}) {
    EXPECT_NE(graph.status().message().find(part), std::string::npos) << part;
  }
}

TEST(TranslateTest, ReportsWhyAnOperatorCannotBeServed) {
  TestModel model;
  model.input("x", {fixed(4)}).output("y", DataType::kInt64).node("NonZero", {"x"}, "y");
  const auto graph = translated(model, {{4}});
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find("depends on the data"), std::string::npos) << graph.status().message();
}

// Operators that follow one another are not rounded in between.
TEST(TranslateTest, ComputesNarrowFloatsInFloat32) {
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
    TestModel model;
    model.input("x", {fixed(4)}, type).output("y", type);
    model.node("Relu", {"x"}, "a").node("Sigmoid", {"a"}, "b").node("Mul", {"a", "b"}, "y");
    const Graph graph = must(translated(model, {{4}}));
    ASSERT_EQ(graph.nodes.size(), 5u);
    EXPECT_EQ(graph.nodes.front().kind, OperatorKind::kCast);
    EXPECT_EQ(graph.nodes.back().kind, OperatorKind::kCast);
    EXPECT_EQ(graph.values[graph.outputs[0]].type, type);
  }
}

TEST(TranslateTest, RefusesOperandsOfTheWrongRank) {
  struct Case {
    const char* type;
    std::vector<Shape> operands;
    std::map<std::string, OnnxAttribute, std::less<>> attributes;
  };
  const std::map<std::string, OnnxAttribute, std::less<>> one_head{
      {"q_num_heads", int64_t{1}}, {"kv_num_heads", int64_t{1}}, {"update_rule", std::string("delta")}};
  const Case cases[] = {
      {"NegativeLogLikelihoodLoss", {{3, 5}, {3}, {}}, {}},
      {"LinearAttention", {{2, 4, 8}, {2, 4, 8}, {2, 4, 8}, {2, 1, 8, 8}, {2, 4, 8}, {2, 4}}, one_head},
      {"GridSample", {{1, 1, 3}, {1, 3, 3, 2}}, {}},
      {"RoiAlign", {{1, 1, 3, 3}, {2, 4}, {}}, {{"sampling_ratio", int64_t{2}}}},
      {"RotaryEmbedding", {{2, 3}, {3, 2}, {3, 2}}, {}},
      {"LSTM", {{2, 3}, {1, 4, 3}, {1, 4, 1}}, {}},
  };
  for (const Case& wrong : cases) {
    TestModel model(23);
    std::vector<std::string> names;
    for (const Shape& shape : wrong.operands) {
      names.push_back("x" + std::to_string(names.size()));
      std::vector<OnnxDimension> dimensions;
      for (int64_t extent : shape) dimensions.push_back(fixed(extent));
      const bool labels = std::string(wrong.type) == "NegativeLogLikelihoodLoss" && names.size() == 2;
      model.input(names.back(), dimensions, labels ? DataType::kInt64 : DataType::kFloat32);
    }
    model.output("y").node(wrong.type, names, "y", wrong.attributes);
    EXPECT_FALSE(translated(model, wrong.operands).ok()) << wrong.type;
  }
}

TEST(TranslateTest, KeepsRecurrentNetworksWholeUnlessTheyAreUnusual) {
  for (const float clip : {0.F, 3.F}) {
    TestModel model;
    model.input("x", {fixed(5), fixed(1), fixed(3)}).input("w", {fixed(1), fixed(16), fixed(3)});
    model.input("r", {fixed(1), fixed(16), fixed(4)}).output("y");
    model.node("LSTM", {"x", "w", "r"}, "y", {{"clip", clip}});
    const Graph graph = must(translated(model, {{5, 1, 3}, {1, 16, 3}, {1, 16, 4}}));
    const auto whole = std::ranges::count(graph.nodes, OperatorKind::kRecurrent, &Node::kind);
    const auto products = std::ranges::count(graph.nodes, OperatorKind::kMatMul, &Node::kind);
    EXPECT_EQ(whole, clip == 0 ? 1 : 0);
    EXPECT_EQ(products, clip == 0 ? 1 : 1 + 5);
    EXPECT_EQ(output_shape(graph), (Shape{5, 1, 1, 4}));
  }
}

TEST(TranslateTest, LooksOnlyAtNodesThatAreNeeded) {
  TestModel model;
  model.input("x", {fixed(1)}).output("y").node("FancyThing", {"x"}, "unused").node("Relu", {"x"}, "y");
  EXPECT_EQ(must(translated(model, {{1}})).nodes.size(), 1u);
}

TEST(TranslateTest, ReportsWhatToDeclareWhenAShapeDependsOnValues) {
  TestModel model;
  model.input("x", {fixed(1)}).input("shape", {fixed(1)}, DataType::kInt64).output("y");
  model.node("Reshape", {"x", "shape"}, "y");
  const auto graph = translated(model, {{1}, {1}});
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find("node_y"), std::string::npos);
  EXPECT_NE(graph.status().message().find("model.toml"), std::string::npos);
}

TEST(TranslateTest, NamesAReductionThatOnnxDoesNotHave) {
  for (const char* reduction : {"mul", "sum"}) {
    TestModel model;
    model.input("x", {fixed(2)}).input("i", {fixed(2)}, DataType::kInt64).input("u", {fixed(2)}).output("y");
    model.node("ScatterElements", {"x", "i", "u"}, "y", {{"reduction", std::string(reduction)}});
    const auto graph = translated(model, {{2}, {2}, {2}});
    EXPECT_EQ(graph.ok(), std::string(reduction) == "mul");
    if (!graph.ok()) {
      EXPECT_NE(graph.status().message().find("reduction is 'sum'"), std::string::npos) << graph.status().message();
    }
  }
}

// Roots and reciprocals are no powers; others, and exponents that differ or enlarge the result, are.
TEST(TranslateTest, RaisesToConstantPowersWithFunctions) {
  using Functions = std::vector<Function>;
  const auto functions_of = [](std::vector<float> exponents, const Shape& shape) {
    TestModel model;
    model.input("x", {fixed(4)}).output("y").constant("exponent", make_constant(shape, exponents));
    const Graph graph = must(translated(model.node("Pow", {"x", "exponent"}, "y"), {{4}}));
    Functions functions;
    for (const Node& node : graph.nodes) functions.push_back(node.attributes.function());
    return functions;
  };
  EXPECT_EQ(functions_of({0.5}, {}), Functions{Function::kSqrt});
  EXPECT_EQ(functions_of({0.5}, {1}), Functions{Function::kSqrt});
  EXPECT_EQ(functions_of({-1}, {}), Functions{Function::kReciprocal});
  EXPECT_EQ(functions_of({-0.5}, {}), (Functions{Function::kSqrt, Function::kReciprocal}));
  EXPECT_EQ(functions_of({1.5}, {}), (Functions{Function::kSqrt, Function::kMul}));
  for (const float exponent : {0.F, 1.F, 2.F, 3.F, 0.25F})
    EXPECT_EQ(functions_of({exponent}, {}), Functions{Function::kPow}) << exponent;
  EXPECT_EQ(functions_of({0.5}, {1, 1}), Functions{Function::kPow});
  EXPECT_EQ(functions_of({0.5, 0.5, 0.5, 0.5}, {4}), Functions{Function::kPow});
}

// Scale and bias of channels stay with the normalisation.
TEST(TranslateTest, NormalizesInstancesAndGroupsInOneStep) {
  for (const bool groups : {false, true}) {
    TestModel model(21);
    model.input("x", {fixed(2), fixed(6), fixed(3), fixed(5)}).output("y").weights("scale", {6}).weights("bias", {6});
    if (groups)
      model.node("GroupNormalization", {"x", "scale", "bias"}, "y", {{"num_groups", int64_t{2}}});
    else
      model.node("InstanceNormalization", {"x", "scale", "bias"}, "y");
    const Graph graph = must(translated(model, {{2, 6, 3, 5}}));
    EXPECT_EQ(std::ranges::count(graph.nodes, OperatorKind::kAffine, &Node::kind), 0);
    const auto norm = std::ranges::find(graph.nodes, OperatorKind::kLayerNorm, &Node::kind);
    ASSERT_NE(norm, graph.nodes.end());
    EXPECT_EQ(graph.values[norm->inputs[1]].shape, groups ? Shape({2, 3, 1}) : Shape({6, 1}));
  }
}

TEST(TranslateTest, FlattensForSoftmaxBeforeOpset13) {
  for (const int64_t opset : {12, 13}) {
    TestModel model(opset);
    model.input("x", {fixed(2), fixed(3), fixed(4)}).output("y").node("Softmax", {"x"}, "y", {{"axis", int64_t{1}}});
    const Graph graph = must(translated(model, {{2, 3, 4}}));
    EXPECT_EQ(graph.nodes.size(), opset < 13 ? 3u : 1u);
    EXPECT_EQ(output_shape(graph), (Shape{2, 3, 4}));
  }
}

TEST(TranslateTest, RewritesTheBatchInReshapeTargets) {
  for (const Integers& target : {Integers{1, 12}, Integers{1, -1}, Integers{-1, 12}, Integers{0, 12}}) {
    TestModel model;
    model.input("x", {fixed(1), fixed(3), fixed(4)}).integers("target", target).output("y");
    model.node("Reshape", {"x", "target"}, "y");
    EXPECT_EQ(output_shape(must(translated(model, {{4, 3, 4}}, {.from = 1, .to = 4}))), (Shape{4, 12}));
    EXPECT_EQ(output_shape(must(translated(model, {{1, 3, 4}}))), (Shape{1, 12}));
  }
}

TEST(TranslateTest, ReshapesWeightsAsTheyAre) {
  TestModel model;
  model.input("x", {fixed(1), fixed(4)}).weights("w", {2, 2}).integers("target", {1, 4}).output("y");
  model.node("Reshape", {"w", "target"}, "flat").node("Add", {"x", "flat"}, "y");
  EXPECT_EQ(output_shape(must(translated(model, {{8, 4}}, {.from = 1, .to = 8}))), (Shape{8, 4}));
}

struct ShapeCase {
  const char* name;
  const char* type;
  Shape x;
  Integers operand;  // a constant second input, unless empty
  std::map<std::string, OnnxAttribute, std::less<>> attributes;
  int64_t opset;
  Shape expected;  // empty: an error
};
void PrintTo(const ShapeCase& value, std::ostream* out) { *out << value.name; }

class ShapeTest : public testing::TestWithParam<ShapeCase> {};

TEST_P(ShapeTest, IsInferred) {
  const ShapeCase& c = GetParam();
  TestModel model(c.opset);
  std::vector<OnnxDimension> dimensions;
  for (int64_t extent : c.x) dimensions.push_back(fixed(extent));
  model.input("x", dimensions).output("y");
  Inputs inputs{"x"};
  if (!c.operand.empty()) {
    model.integers("operand", c.operand);
    inputs.push_back("operand");
  }
  model.node(c.type, inputs, "y", c.attributes);
  const auto graph = translated(model, {c.x});
  if (c.expected.empty()) {
    ASSERT_FALSE(graph.ok());
    EXPECT_NE(graph.status().message().find("node_y"), std::string::npos);
  } else {
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    EXPECT_EQ(output_shape(*graph), c.expected);
  }
}

const Integers k3x3{3, 3};

INSTANTIATE_TEST_SUITE_P(
    Operators, ShapeTest,
    testing::Values(
        ShapeCase{"flatten", "Flatten", {2, 3, 4}, {}, {{"axis", int64_t{2}}}, 13, {6, 4}},
        ShapeCase{"squeeze_attribute", "Squeeze", {1, 3, 1}, {}, {{"axes", Integers{0}}}, 11, {3, 1}},
        ShapeCase{"squeeze_operand", "Squeeze", {1, 3, 1}, {-1}, {}, 13, {1, 3}},
        ShapeCase{"squeeze_wrong", "Squeeze", {1, 3, 1}, {1}, {}, 13, {}},
        ShapeCase{"unsqueeze", "Unsqueeze", {2, 3}, {0, -1}, {}, 13, {1, 2, 3, 1}},
        ShapeCase{"tile", "Tile", {2, 3}, {2, 2}, {}, 13, {4, 6}},
        ShapeCase{"expand", "Expand", {3, 1}, {2, 1, 6}, {}, 13, {2, 3, 6}},
        ShapeCase{"expand_wrong", "Expand", {3}, {2}, {}, 13, {}},
        ShapeCase{"reshape_wrong", "Reshape", {2, 3}, {4, -1}, {}, 13, {}},
        ShapeCase{
            "slice_attributes", "Slice", {5, 6}, {}, {{"starts", Integers{1}}, {"ends", Integers{-1}}}, 9, {3, 6}},
        ShapeCase{"transpose", "Transpose", {2, 3, 4}, {}, {}, 13, {4, 3, 2}},
        ShapeCase{"transpose_wrong", "Transpose", {2, 3}, {}, {{"perm", Integers{0, 0}}}, 13, {}},
        ShapeCase{"reduce_attribute", "ReduceMean", {2, 3, 4}, {}, {{"axes", Integers{-1}}}, 13, {2, 3, 1}},
        ShapeCase{"reduce_operand", "ReduceMean", {2, 3, 4}, {1}, {{"keepdims", int64_t{0}}}, 18, {2, 4}},
        ShapeCase{"pool_floor",
                  "MaxPool",
                  {1, 2, 6, 6},
                  {},
                  {{"kernel_shape", k3x3}, {"strides", Integers{2, 2}}},
                  12,
                  {1, 2, 2, 2}},
        ShapeCase{"pool_ceil",
                  "MaxPool",
                  {1, 2, 6, 6},
                  {},
                  {{"kernel_shape", k3x3}, {"strides", Integers{2, 2}}, {"ceil_mode", int64_t{1}}},
                  12,
                  {1, 2, 3, 3}},
        ShapeCase{"pool_same",
                  "AveragePool",
                  {1, 2, 7, 7},
                  {},
                  {{"kernel_shape", k3x3}, {"strides", Integers{2, 2}}, {"auto_pad", std::string("SAME_UPPER")}},
                  12,
                  {1, 2, 4, 4}},
        ShapeCase{"pool_too_large", "MaxPool", {1, 2, 2, 2}, {}, {{"kernel_shape", k3x3}}, 12, {}},
        ShapeCase{"pool_stride_zero",
                  "MaxPool",
                  {1, 2, 9, 9},
                  {},
                  {{"kernel_shape", k3x3}, {"strides", Integers{0, 1}}},
                  12,
                  {}},
        ShapeCase{"depth_to_space", "DepthToSpace", {1, 8, 2, 3}, {}, {{"blocksize", int64_t{2}}}, 13, {1, 2, 4, 6}},
        ShapeCase{"wrong_attribute", "Flatten", {2, 3}, {}, {{"axis", std::string("1")}}, 13, {}},
        ShapeCase{"huge", "Expand", {1}, {1 << 30, 1 << 30, 1 << 30}, {}, 13, {}}),
    [](const auto& shape_case) { return std::string(shape_case.param.name); });

TEST(TranslateTest, SplitsIntoTheOutputsThatAreUsed) {
  TestModel model;
  model.input("x", {fixed(2), fixed(6)}).output("y").node("Split", {"x"}, "a", {{"axis", int64_t{1}}});
  model.model().nodes[0].outputs = {"a", "b", "c"};
  model.node("Relu", {"c"}, "y");
  const Graph graph = must(translated(model, {{2, 6}}));
  ASSERT_EQ(graph.nodes.size(), 2u);
  EXPECT_EQ(graph.nodes[0].attributes.integers("starts"), (Integers{0, 4}));
  EXPECT_EQ(output_shape(graph), (Shape{2, 2}));
}

TEST(TranslateTest, SharesConstantsBetweenBatchSizes) {
  TestModel model;
  model.input("x", {open("batch"), fixed(4)}).weights("w", {4, 4}).output("y");
  model.node("Transpose", {"w"}, "turned").node("MatMul", {"x", "turned"}, "y");
  ConstantPool pool;
  const Graph one = must(translate(model.model(), {{1, 4}}, {}, pool));
  const Graph two = must(translate(model.model(), {{2, 4}}, {}, pool));
  EXPECT_EQ(one.values[one.nodes[0].inputs[1]].constant, two.values[two.nodes[0].inputs[1]].constant);
}

}  // namespace
}  // namespace foliot
