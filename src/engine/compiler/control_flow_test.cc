// Translation of If, Loop, Scan and of functions that a file defines.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/compiler/onnx_reader.h"
#include "engine/compiler/passes.h"
#include "engine/compiler/test_model.h"
#include "engine/compiler/translate.h"

namespace foliot {
namespace {

using Names = std::vector<std::string>;
using Integers = std::vector<int64_t>;

OnnxNode node(std::string type, Names inputs, Names outputs, OnnxAttributes attributes = {}) {
  OnnxNode result;
  result.name = "node_" + outputs[0];
  result.type = std::move(type);
  result.inputs = std::move(inputs);
  result.outputs = std::move(outputs);
  result.attributes = std::move(attributes);
  return result;
}

OnnxNode call(std::string type, Names inputs, Names outputs, OnnxAttributes attributes = {}) {
  OnnxNode result = node(std::move(type), std::move(inputs), std::move(outputs), std::move(attributes));
  result.domain = "own";
  return result;
}

OnnxAttribute body(Names inputs, Names outputs, std::vector<OnnxNode> nodes) {
  return std::make_shared<const OnnxGraph>(OnnxGraph{
      .inputs = std::move(inputs), .outputs = std::move(outputs), .constants = {}, .nodes = std::move(nodes)});
}

// Of one input and one output.
void define(TestModel& model, const std::string& name, std::vector<OnnxNode> nodes, OnnxAttributes defaults = {}) {
  OnnxFunction function{.body = {.inputs = {"in"}, .outputs = {"out"}, .constants = {}, .nodes = std::move(nodes)},
                        .opset = 17,
                        .defaults = std::move(defaults)};
  model.model().functions.insert_or_assign(std::tuple("own", name, ""), std::move(function));
}

TestModel model_of(std::vector<OnnxNode> nodes, DataType type = DataType::kFloat32) {
  TestModel model;
  model.input("x", {open("rows"), fixed(2)}).output("y", type);
  model.model().nodes = std::move(nodes);
  return model;
}

// After it was written to a file and read.
Result<Graph> translated(const TestModel& model, int64_t rows = 3) {
  const std::string bytes = serialize(model);
  const auto read = parse_onnx(std::as_bytes(std::span(bytes)), ".");
  if (!read.ok()) return read.status();
  ConstantPool pool;
  auto graph = translate(*read, {{rows, 2}}, {}, pool);
  if (graph.ok()) remove_dead_code(*graph);
  return graph;
}

Graph must(const TestModel& model, int64_t rows = 3) {
  auto graph = translated(model, rows);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? std::move(graph).value() : Graph();
}

void expect_refused(const TestModel& model, StatusCode code, const Names& parts) {
  const auto graph = translated(model);
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().code(), code) << graph.status().message();
  for (const std::string& part : parts) {
    EXPECT_NE(graph.status().message().find(part), std::string::npos) << graph.status().message();
  }
}

size_t count(const Graph& graph, Function function) {
  return static_cast<size_t>(std::ranges::count_if(graph.nodes, [&](const Node& candidate) {
    return candidate.kind == OperatorKind::kUnary && candidate.attributes.function("function") == function;
  }));
}

Integers known_output(const Graph& graph) {
  const Value& output = graph.values[graph.outputs.at(0)];
  EXPECT_TRUE(output.is_constant());
  return output.is_constant() ? to_integers({output.type, output.shape, output.constant}) : Integers();
}

// Relu of more than two rows, else Tanh; both of a value of the graph around them.
TestModel branches() {
  TestModel model = model_of({
      node("Neg", {"x"}, {"negative"}),
      node("Shape", {"x"}, {"shape"}, {{"end", int64_t{1}}}),
      node("Greater", {"shape", "two"}, {"many"}),
      node("If", {"many"}, {"y"},
           {{"then_branch", body({}, {"a"}, {node("Relu", {"negative"}, {"a"})})},
            {"else_branch", body({}, {"b"}, {node("Tanh", {"negative"}, {"b"})})}}),
  });
  model.integers("two", {2});
  return model;
}

TEST(ControlFlowTest, TakesTheBranchThatTheShapesDecide) {
  const Graph many = must(branches(), 3), few = must(branches(), 2);
  EXPECT_EQ(count(many, Function::kRelu), 1u);
  EXPECT_EQ(count(many, Function::kTanh), 0u);
  EXPECT_EQ(count(few, Function::kRelu), 0u);
  EXPECT_EQ(count(few, Function::kTanh), 1u);
}

TEST(ControlFlowTest, RefusesBranchesThatTheDataDecides) {
  TestModel model = branches();
  model.model().nodes[2] = node("ReduceMax", {"x"}, {"most"}, {{"keepdims", int64_t{0}}});
  model.model().nodes[3].inputs = {"most"};
  expect_refused(model, StatusCode::kUnimplemented, {"node_y", "If", "'most'", "depend on the data"});
}

TEST(ControlFlowTest, NamesWhatABodyRefersToAndIsNotThere) {
  TestModel model = branches();
  model.model().nodes[3].attributes["then_branch"] = body({}, {"a"}, {node("Relu", {"missing"}, {"a"})});
  expect_refused(model, StatusCode::kInvalidArgument, {"node_y", "node_a", "'missing'"});
  model.model().nodes[3].attributes["then_branch"] = body({}, {"missing"}, {});
  expect_refused(model, StatusCode::kInvalidArgument, {"node_y", "'missing'"});
}

// 10 + 0 + 1 + 2 + 3, and the sums on the way.
TestModel sums(const std::string& output, int64_t runs = 4) {
  TestModel model =
      model_of({node("Loop", {"runs", "", "ten"}, {"sum", "all"},
                     {{"body", body({"i", "go_in", "so_far"}, {"go", "next", "next_too"},
                                    {node("Identity", {"go_in"}, {"go"}), node("Add", {"so_far", "i"}, {"next"}),
                                     node("Identity", {"next"}, {"next_too"})})}}),
                node("Identity", {output}, {"y"})},
               DataType::kInt64);
  model.constant("runs", make_constant({}, Integers{runs})).constant("ten", make_constant({}, Integers{10}));
  return model;
}

TEST(ControlFlowTest, UnrollsLoops) {
  EXPECT_EQ(known_output(must(sums("sum"))), (Integers{16}));
  EXPECT_EQ(known_output(must(sums("all"))), (Integers{10, 11, 13, 16}));
  EXPECT_EQ(known_output(must(sums("sum", 0))), (Integers{10}));
}

TEST(ControlFlowTest, RefusesToStackNothing) {
  expect_refused(sums("all", 0), StatusCode::kUnimplemented, {"node_sum", "runs no times"});
}

TEST(ControlFlowTest, EndsLoopsByTheirCondition) {
  TestModel model = sums("sum", 1000);
  model.scalar("four", 4).constant("three", make_constant({}, Integers{3}));
  model.model().nodes[0].attributes["body"] =
      body({"i", "go_in", "so_far"}, {"go", "next", "i"},
           {node("Less", {"i", "three"}, {"go"}), node("Add", {"so_far", "i"}, {"next"})});
  EXPECT_EQ(known_output(must(model)), (Integers{16}));
}

TEST(ControlFlowTest, BoundsUnrolling) {
  expect_refused(sums("sum", int64_t{1} << 60), StatusCode::kResourceExhausted, {"node_sum", "Loop", "100000"});
  TestModel empty = sums("sum", int64_t{1} << 60);
  empty.model().nodes[0].attributes["body"] = body({"i", "go_in", "so_far"}, {"go_in", "so_far", "i"}, {});
  expect_refused(empty, StatusCode::kResourceExhausted, {"node_sum", "Loop", "100000"});
}

// Rows of x from the last to the first, added up on the way.
TestModel scan() {
  return model_of({node("ReduceSum", {"x", "rows"}, {"zero_like"}, {{"keepdims", int64_t{0}}}),
                   node("Scan", {"zero_like", "x"}, {"sum", "y"},
                        {{"num_scan_inputs", int64_t{1}},
                         {"scan_input_directions", Integers{1}},
                         {"body", body({"so_far", "row"}, {"next", "next_too"},
                                       {node("Add", {"so_far", "row"}, {"next"}),
                                        node("Identity", {"next"}, {"next_too"})})}})})
      .integers("rows", {0});
}

TEST(ControlFlowTest, UnrollsScans) {
  const Graph graph = must(scan(), 5);
  EXPECT_EQ(graph.values[graph.outputs[0]].shape, (Shape{5, 2}));
  EXPECT_EQ(std::ranges::count(graph.nodes, OperatorKind::kBinary, &Node::kind), 5);
  EXPECT_EQ(std::ranges::count(graph.nodes, OperatorKind::kSlice, &Node::kind), 5);
}

TEST(ControlFlowTest, RefusesScansThatDoNotFit) {
  TestModel many = scan();
  many.model().nodes[1].attributes["num_scan_inputs"] = int64_t{3};
  expect_refused(many, StatusCode::kInvalidArgument, {"node_sum", "num_scan_inputs", "3"});
  TestModel directions = scan();
  directions.model().nodes[1].attributes["scan_input_directions"] = Integers{1, 0};
  expect_refused(directions, StatusCode::kInvalidArgument, {"scan_input_directions", "2", "1"});
  TestModel inputs = scan();
  inputs.model().nodes[1].inputs.emplace_back("x");
  expect_refused(inputs, StatusCode::kInvalidArgument, {"its body has 2 inputs"});
}

TEST(ControlFlowTest, RefusesABodyThatIsNone) {
  TestModel model = scan();
  model.model().nodes[1].attributes["body"] = int64_t{1};
  expect_refused(model, StatusCode::kInvalidArgument, {"node_sum", "'body'"});
}

TEST(ControlFlowTest, InlinesFunctions) {
  TestModel model = model_of({call("Leak", {"x"}, {"a"}, {{"slope", 0.5f}}), call("Leak", {"a"}, {"y"})});
  define(model, "Leak", {node("LeakyRelu", {"in"}, {"out"}, {{"alpha", OnnxAttributeReference{"slope"}}})},
         {{"slope", 0.25f}});
  const Graph graph = must(model);
  ASSERT_EQ(graph.nodes.size(), 2u);
  EXPECT_EQ(graph.nodes[0].attributes.real("alpha"), 0.5);
  EXPECT_EQ(graph.nodes[1].attributes.real("alpha"), 0.25);
}

TEST(ControlFlowTest, PassesAttributesOnToInnerFunctions) {
  TestModel model = model_of({call("Outer", {"x"}, {"y"}, {{"slope", 0.5f}})});
  define(model, "Outer", {call("Inner", {"in"}, {"out"}, {{"inner_slope", OnnxAttributeReference{"slope"}}})});
  define(model, "Inner", {node("LeakyRelu", {"in"}, {"out"}, {{"alpha", OnnxAttributeReference{"inner_slope"}}})});
  EXPECT_EQ(must(model).nodes.at(0).attributes.real("alpha"), 0.5);
}

TEST(ControlFlowTest, FunctionsDoNotSeeTheNamesOfTheirCallers) {
  TestModel model = model_of({call("Sneak", {"x"}, {"y"})});
  define(model, "Sneak", {node("Add", {"in", "x"}, {"out"})});
  expect_refused(model, StatusCode::kInvalidArgument, {"node_y", "Sneak", "'x'"});
}

TEST(ControlFlowTest, RefusesFunctionsThatCallThemselves) {
  TestModel model = model_of({call("First", {"x"}, {"y"})});
  define(model, "First", {call("Second", {"in"}, {"out"})});
  define(model, "Second", {call("First", {"in"}, {"out"})});
  expect_refused(model, StatusCode::kInvalidArgument, {"function 'First' calls itself", "node_y"});
}

TEST(ControlFlowTest, RefusesMoreOperandsThanAFunctionHas) {
  TestModel model = model_of({call("One", {"x", "x"}, {"y"})});
  define(model, "One", {node("Relu", {"in"}, {"out"})});
  expect_refused(model, StatusCode::kInvalidArgument, {"function 'One' has 1 inputs"});
}

// Each calls the one below twice, so that there are 2^40 calls.
TEST(ControlFlowTest, BoundsCallsOfFunctions) {
  TestModel model = model_of({call("F40", {"x"}, {"y"})});
  define(model, "F0", {node("Relu", {"in"}, {"out"})});
  for (int i = 1; i <= 40; ++i) {
    const std::string below = "F" + std::to_string(i - 1);
    define(model, "F" + std::to_string(i), {call(below, {"in"}, {"between"}), call(below, {"between"}, {"out"})});
  }
  expect_refused(model, StatusCode::kResourceExhausted, {"node_y", "100000"});
}

TEST(ControlFlowTest, BoundsTheDepthOfCalls) {
  TestModel model = model_of({call("F100", {"x"}, {"y"})});
  define(model, "F0", {node("Relu", {"in"}, {"out"})});
  for (int i = 1; i <= 100; ++i) {
    define(model, "F" + std::to_string(i), {call("F" + std::to_string(i - 1), {"in"}, {"out"})});
  }
  expect_refused(model, StatusCode::kResourceExhausted, {"node_y", "64"});
}

}  // namespace
}  // namespace foliot
