#include <gtest/gtest.h>

#include <algorithm>

#include "engine/compiler/passes.h"
#include "engine/compiler/test_model.h"
#include "engine/compiler/translate.h"

namespace foliot {
namespace {

using Kinds = std::vector<OperatorKind>;

class QuantizedModel : public TestModel {
 public:
  explicit QuantizedModel(DataType codes = DataType::kUint8) : codes_(codes) {}

  // x, as it comes out of quantising and dequantising.
  std::string fake(const std::string& x, float scale, double zero_point) {
    scalar(x + "_scale", scale).constant(x + "_zero", make_scalar(codes_, zero_point));
    node("QuantizeLinear", {x, x + "_scale", x + "_zero"}, x + "_codes");
    node("DequantizeLinear", {x + "_codes", x + "_scale", x + "_zero"}, x + "_real");
    return x + "_real";
  }
  std::string int8_weights(const std::string& name, const Shape& shape) {
    std::vector<int64_t> values(element_count(shape));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i * 37 % 255) - 127;
    constant(name + "_codes", from_integers(DataType::kInt8, shape, values));
    std::vector<float> scales(static_cast<size_t>(shape[0]));
    for (size_t i = 0; i < scales.size(); ++i) scales[i] = 0.001f * static_cast<float>(i + 1);
    constant(name + "_scales", make_constant({shape[0]}, scales));
    constant(name + "_zeros", from_integers(DataType::kInt8, {shape[0]}, std::vector<int64_t>(scales.size(), 0)));
    node("DequantizeLinear", {name + "_codes", name + "_scales", name + "_zeros"}, name, {{"axis", int64_t{0}}});
    return name;
  }

 private:
  DataType codes_;
};

Graph optimized(const TestModel& model, const Shape& shape, Narrowing narrowing = {.quantized = true}) {
  ConstantPool pool;
  auto graph = translate(model.model(), {shape}, {}, pool);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  if (!graph.ok()) return {};
  optimize(*graph, pool, narrowing);
  return std::move(graph).value();
}

Kinds kinds(const Graph& graph) {
  Kinds result;
  for (const Node& node : graph.nodes) result.push_back(node.kind);
  return result;
}

std::vector<Function> functions(const Node& node) {
  std::vector<Function> result;
  for (const PostOperation& operation : node.post_operations) result.push_back(operation.function);
  return result;
}

// y = conv(x) + x, quantised at every step.
QuantizedModel residual(DataType codes) {
  const double zero = codes == DataType::kUint8 ? 0 : -128;
  QuantizedModel model(codes);
  model.input("x", {fixed(1), fixed(4), fixed(5), fixed(5)}).output("z_real");
  const std::string x = model.fake("x", 0.02f, zero);
  model.node("Conv", {x, model.int8_weights("w", {4, 4, 1, 1})}, "y");
  model.node("Add", {model.fake("y", 0.03f, zero + 120), x}, "s").node("Relu", {"s"}, "z");
  model.fake("z", 0.04f, zero);
  return model;
}

TEST(FuseQuantizedTest, AProductAddsWhatIsQuantised) {
  for (const DataType codes : {DataType::kUint8, DataType::kInt8}) {
    const Graph graph = optimized(residual(codes), {1, 4, 5, 5});
    ASSERT_EQ(kinds(graph), (Kinds{OperatorKind::kQuantize, OperatorKind::kConvolution, OperatorKind::kDequantize}));
    const Node& product = graph.nodes[1];
    // No relu: a code cannot be less than zero.
    EXPECT_EQ(functions(product), (std::vector<Function>{Function::kMul, Function::kClip, Function::kRound,
                                                         Function::kMul, Function::kAdd, Function::kLinear}));
    EXPECT_EQ(graph.values[product.inputs[0]].type, DataType::kUint8);
    EXPECT_EQ(graph.values[product.inputs[1]].type, DataType::kInt8);
    EXPECT_EQ(graph.values[product.outputs[0]].type, DataType::kUint8);
  }
}

TEST(FuseQuantizedTest, NothingIsFusedForDevicesThatDoNotMultiplyBytes) {
  const Graph graph = optimized(residual(DataType::kUint8), {1, 4, 5, 5}, {});
  const auto found = std::ranges::find(graph.nodes, OperatorKind::kConvolution, &Node::kind);
  ASSERT_NE(found, graph.nodes.end());
  EXPECT_EQ(graph.values[found->inputs[0]].type, DataType::kFloat32);
  EXPECT_TRUE(graph.values[found->inputs[1]].is_constant());
  EXPECT_EQ(graph.values[found->inputs[1]].type, DataType::kFloat32);
}

TEST(FuseQuantizedTest, PadsWithWhatStandsForZero) {
  QuantizedModel model;
  model.input("x", {fixed(1), fixed(4), fixed(5), fixed(5)}).output("y_real");
  const std::string x = model.fake("x", 0.02f, 100);
  model.node("Conv", {x, model.int8_weights("w", {4, 4, 3, 3})}, "y", {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  model.fake("y", 0.03f, 7);
  const Graph graph = optimized(model, {1, 4, 5, 5});
  ASSERT_EQ(kinds(graph), (Kinds{OperatorKind::kQuantize, OperatorKind::kPad, OperatorKind::kConvolution,
                                 OperatorKind::kDequantize}));
  EXPECT_EQ(graph.nodes[1].attributes.real("value"), 100);
  EXPECT_EQ(graph.values[graph.nodes[1].outputs[0]].shape, (Shape{1, 4, 7, 7}));
  EXPECT_EQ(graph.nodes[2].attributes.integers("pads"), (std::vector<int64_t>{0, 0, 0, 0}));
}

TEST(FuseQuantizedTest, PicksCodes) {
  QuantizedModel model;
  model.input("x", {fixed(1), fixed(4), fixed(6), fixed(6)}).output("y_real");
  const std::string x = model.fake("x", 0.02f, 100);
  model.node("MaxPool", {x}, "y", {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  model.fake("y", 0.02f, 100);
  const Graph graph = optimized(model, {1, 4, 6, 6});
  ASSERT_EQ(kinds(graph), (Kinds{OperatorKind::kQuantize, OperatorKind::kMaxPool, OperatorKind::kDequantize}));
  EXPECT_EQ(graph.values[graph.nodes[1].outputs[0]].type, DataType::kUint8);
}

TEST(NarrowToBfloat16Test, ProductsAndWhatLiesBetweenThem) {
  TestModel model;
  model.input("x", {fixed(1), fixed(4), fixed(8), fixed(8)}).output("y");
  model.weights("v", {4, 4, 1, 1}).weights("w", {4, 4, 1, 1});
  model.node("Conv", {"x", "v"}, "a").node("MaxPool", {"a"}, "b", {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  model.node("Conv", {"b", "w"}, "c").node("Softmax", {"c"}, "y", {{"axis", int64_t{1}}});
  const Graph graph = optimized(model, {1, 4, 8, 8}, {.bfloat16 = true});
  ASSERT_EQ(kinds(graph), (Kinds{OperatorKind::kCast, OperatorKind::kConvolution, OperatorKind::kMaxPool,
                                 OperatorKind::kConvolution, OperatorKind::kSoftmax}));
  EXPECT_EQ(graph.values[graph.nodes[2].outputs[0]].type, DataType::kBfloat16);
  // What only float32 follows is written as float32 at once.
  EXPECT_EQ(graph.values[graph.nodes[3].outputs[0]].type, DataType::kFloat32);
  EXPECT_EQ(graph.values[graph.nodes[3].inputs[1]].type, DataType::kBfloat16);
}

}  // namespace
}  // namespace foliot
