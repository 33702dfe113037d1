#include "engine/compiler/row_proof.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "engine/compiler/test_model.h"
#include "engine/compiler/translate.h"

namespace foliot {
namespace {

// Of inputs whose first dimension is the batch. Empty: the rows are
// independent.
std::string why_mixed(const TestModel& model, bool fixed_to_one = false) {
  ConstantPool pool;
  RowProof proof(pool);
  for (const int64_t rows : {1, 2, 4, 6}) {
    std::vector<Shape> shapes;
    for (const OnnxValueInfo& input : model.model().inputs) {
      Shape& shape = shapes.emplace_back(Shape{rows});
      for (size_t i = 1; i < input.dimensions->size(); ++i) shape.push_back((*input.dimensions)[i].value);
    }
    const Rebatch rebatch{.from = fixed_to_one ? 1 : rows, .to = rows};
    Result<Graph> graph = translate(model.model(), shapes, rebatch, pool);
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    if (!graph.ok()) return "not translated";
    graph->batch_size = static_cast<uint32_t>(rows);
    std::string why = proof.add(*graph);
    if (!why.empty()) return why;
  }
  return {};
}

TestModel with_input(std::vector<int64_t> row) {
  TestModel model;
  std::vector<OnnxDimension> dimensions{open("batch")};
  for (const int64_t extent : row) dimensions.push_back(fixed(extent));
  model.input("x", std::move(dimensions)).output("y");
  return model;
}

TEST(RowProofTest, ProductsAndElementsAreByRow) {
  TestModel model = with_input({3});
  model.weights("w", {3, 4}).weights("b", {4}).node("Gemm", {"x", "w", "b"}, "h").node("Relu", {"h"}, "r");
  model.node("Softmax", {"r"}, "y", {{"axis", int64_t{-1}}});
  EXPECT_EQ(why_mixed(model), "");
}

TEST(RowProofTest, ReductionsOverRowsMix) {
  for (const char* type : {"ReduceMean", "ReduceMax", "ReduceL2"}) {
    TestModel model = with_input({3});
    model.node(type, {"x"}, "m", {{"axes", std::vector<int64_t>{0}}, {"keepdims", int64_t{1}}});
    model.node("Sub", {"x", "m"}, "y");
    EXPECT_EQ(why_mixed(model),
              "node 'node_m' (Reduce): it works along the "
              "dimension in which the rows lie");
  }
}

TEST(RowProofTest, AMaximumOfAllIsSeenThoughItIsHardlyEverLargest) {
  TestModel model = with_input({3});
  model.scalar("c", 100).node("Abs", {"x"}, "a").node("ReduceMax", {"a"}, "m", {{"keepdims", int64_t{0}}});
  model.node("Max", {"m", "c"}, "d").node("Div", {"x", "d"}, "y");
  EXPECT_NE(why_mixed(model).find("node_m"), std::string::npos);
}

TEST(RowProofTest, ProductsOfRowsWithRowsMix) {
  TestModel model = with_input({3});
  model.node("Transpose", {"x"}, "t", {{"perm", std::vector<int64_t>{1, 0}}}).node("MatMul", {"x", "t"}, "s");
  model.node("Softmax", {"s"}, "a", {{"axis", int64_t{-1}}}).node("MatMul", {"a", "x"}, "y");
  EXPECT_NE(why_mixed(model).find("node_s"), std::string::npos);
}

// torch's x.view(1, -1, d) of a set of points.
TEST(RowProofTest, AReshapeThatTakesTheRowsAsASequenceIsNoBatch) {
  TestModel model = with_input({4});
  model.integers("set", {1, -1, 4}).integers("back", {-1, 4}).weights("w", {4, 4});
  model.node("Reshape", {"x", "set"}, "s").node("MatMul", {"s", "w"}, "q");
  model.node("Transpose", {"s"}, "t", {{"perm", std::vector<int64_t>{0, 2, 1}}}).node("MatMul", {"q", "t"}, "scores");
  model.node("Softmax", {"scores"}, "p", {{"axis", int64_t{-1}}}).node("MatMul", {"p", "s"}, "z");
  model.node("Reshape", {"z", "back"}, "y");
  EXPECT_NE(why_mixed(model).find("node_scores"), std::string::npos);
}

// Attention as exporters write it, with shapes computed and heads beside the
// batch.
TestModel attention(bool joins_heads) {
  TestModel model = with_input({5, 8});
  model.weights("w", {8, 8})
      .integers("zero", {0})
      .integers("one", {1})
      .integers("heads", {5, 2, 4})
      .integers("flat", {5, 8});
  model.node("Shape", {"x"}, "shape").node("Slice", {"shape", "zero", "one"}, "batch");
  model.node("Concat", {"batch", "heads"}, "split", {{"axis", int64_t{0}}});
  model.node("Concat", {"batch", "flat"}, "whole", {{"axis", int64_t{0}}});
  model.node("MatMul", {"x", "w"}, "q").node("Reshape", {"q", "split"}, "q4");
  model.node("Transpose", {"q4"}, "qt", {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  std::string queries = "qt";
  if (joins_heads) {
    model.integers("joined", {-1, 5, 4});
    model.node("Reshape", {"qt", "joined"}, "q3");
    queries = "q3";
  }
  model.node("Transpose", {queries}, "k",
             {{"perm", joins_heads ? std::vector<int64_t>{0, 2, 1} : std::vector<int64_t>{0, 1, 3, 2}}});
  model.node("MatMul", {queries, "k"}, "s").node("Softmax", {"s"}, "p", {{"axis", int64_t{-1}}});
  model.node("MatMul", {"p", queries}, "z");
  std::string result = "z";
  if (joins_heads) {
    model.integers("apart", {-1, 2, 5, 4}).node("Reshape", {"z", "apart"}, "z4");
    result = "z4";
  }
  model.node("Transpose", {result}, "zt", {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  model.node("Reshape", {"zt", "whole"}, "y");
  return model;
}

TEST(RowProofTest, AttentionWithinARowIsByRow) {
  EXPECT_EQ(why_mixed(attention(false)), "");
  EXPECT_EQ(why_mixed(attention(true)), "");
}

TEST(RowProofTest, WhatDependsOnTheNumberOfRowsIsNotByRow) {
  TestModel model = with_input({3});
  model.integers("at", {0}).node("Shape", {"x"}, "shape").node("Gather", {"shape", "at"}, "n");
  model.node("Cast", {"n"}, "f", {{"to", int64_t{1}}}).node("Div", {"x", "f"}, "y");
  EXPECT_NE(why_mixed(model).find("node_y"), std::string::npos);
}

TEST(RowProofTest, WhatDependsOnTheRowsPlaceIsNotByRow) {
  TestModel model = with_input({3});
  model.constant("first", make_scalar(DataType::kInt64, 0)).constant("step", make_scalar(DataType::kInt64, 1));
  model.integers("column", {1});
  model.constant("at", make_scalar(DataType::kInt64, 0));
  model.node("Shape", {"x"}, "shape").node("Gather", {"shape", "at"}, "n").node("Range", {"first", "n", "step"}, "r");
  model.node("Cast", {"r"}, "f", {{"to", int64_t{1}}})
      .node("Unsqueeze", {"f", "column"}, "c")
      .node("Add", {"x", "c"}, "y");
  EXPECT_EQ(why_mixed(model), "node 'node_y' (Binary): a constant has other values for each row");
}

// A class token, repeated for every row.
TEST(RowProofTest, AConstantThatIsRepeatedForEachRowIsByRow) {
  TestModel model = with_input({3, 4});
  model.weights("token", {1, 1, 4}).integers("zero", {0}).integers("one", {1}).integers("rest", {1, 4});
  model.node("Shape", {"x"}, "shape").node("Slice", {"shape", "zero", "one"}, "batch");
  model.node("Concat", {"batch", "rest"}, "all", {{"axis", int64_t{0}}}).node("Expand", {"token", "all"}, "tokens");
  model.node("Concat", {"tokens", "x"}, "y", {{"axis", int64_t{1}}});
  EXPECT_EQ(why_mixed(model), "");
}

TEST(RowProofTest, RecurrentNetworksHaveTheirRowsInTheSecondDimension) {
  TestModel model = with_input({6, 3});
  model.weights("w", {1, 8, 3}).weights("r", {1, 8, 2});
  model.node("Transpose", {"x"}, "t", {{"perm", std::vector<int64_t>{1, 0, 2}}});
  model.node("LSTM", {"t", "w", "r"}, "h", {{"hidden_size", int64_t{2}}}).integers("dropped", {1});
  model.node("Squeeze", {"h", "dropped"}, "s").node("Transpose", {"s"}, "y", {{"perm", std::vector<int64_t>{1, 0, 2}}});
  EXPECT_EQ(why_mixed(model), "");
  TestModel sequence = with_input({1, 3});
  sequence.weights("w", {1, 8, 3}).weights("r", {1, 8, 2});
  sequence.node("LSTM", {"x", "w", "r"}, "h", {{"hidden_size", int64_t{2}}}).integers("dropped", {1});
  sequence.node("Squeeze", {"h", "dropped"}, "y");
  EXPECT_NE(why_mixed(sequence).find("(Recurrent)"), std::string::npos);
}

// A GRU whose steps are written out: the first of them takes a state of zeros.
TEST(RowProofTest, FirstStatesOfRowsAreAlike) {
  TestModel model = with_input({2, 3});
  model.weights("w", {1, 6, 3}).weights("r", {1, 6, 2}).integers("dropped", {1});
  model.node("Transpose", {"x"}, "t", {{"perm", std::vector<int64_t>{1, 0, 2}}});
  model.node("GRU", {"t", "w", "r"}, "h", {{"hidden_size", int64_t{2}}});
  model.node("Squeeze", {"h", "dropped"}, "s").node("Transpose", {"s"}, "y", {{"perm", std::vector<int64_t>{1, 0, 2}}});
  EXPECT_EQ(why_mixed(model), "");
}

TEST(RowProofTest, WindowsAreByRowAndConvolutionsAlongRowsAreNot) {
  TestModel windows = with_input({2, 6, 6});
  windows.weights("w", {3, 2, 3, 3}).node("Conv", {"x", "w"}, "c").node("GlobalAveragePool", {"c"}, "g");
  windows.node("Flatten", {"g"}, "y");
  EXPECT_EQ(why_mixed(windows), "");
  TestModel sequence = with_input({2});
  sequence.weights("w", {2, 2, 1}).integers("first", {0});
  sequence.node("Transpose", {"x"}, "t", {{"perm", std::vector<int64_t>{1, 0}}}).node("Unsqueeze", {"t", "first"}, "u");
  sequence.node("Conv", {"u", "w"}, "c").node("Squeeze", {"c", "first"}, "s");
  sequence.node("Transpose", {"s"}, "y", {{"perm", std::vector<int64_t>{1, 0}}});
  EXPECT_NE(why_mixed(sequence).find("(Convolution)"), std::string::npos);
}

TEST(RowProofTest, DynamicQuantisationTakesItsScaleFromAllRows) {
  TestModel model = with_input({4});
  OnnxNode node{.name = "quantize",
                .type = "DynamicQuantizeLinear",
                .domain = {},
                .overload = {},
                .inputs = {"x"},
                .outputs = {"q", "scale", "zero"},
                .attributes = {}};
  model.model().nodes.push_back(node);
  model.node("DequantizeLinear", {"q", "scale", "zero"}, "y");
  EXPECT_NE(why_mixed(model).find("'quantize'"), std::string::npos);
}

// The halves of a batch that was doubled, as for guidance by two prompts.
TEST(RowProofTest, BatchesOneAfterAnotherAreTakenApartAgain) {
  TestModel model = with_input({3});
  model.node("Neg", {"x"}, "n").node("Concat", {"x", "n"}, "both", {{"axis", int64_t{0}}}).node("Exp", {"both"}, "e");
  OnnxNode split{.name = "split",
                 .type = "Split",
                 .domain = {},
                 .overload = {},
                 .inputs = {"e"},
                 .outputs = {"a", "b"},
                 .attributes = {{"axis", int64_t{0}}}};
  model.model().nodes.push_back(split);
  model.node("Sub", {"a", "b"}, "y");
  EXPECT_EQ(why_mixed(model), "");
}

TEST(RowProofTest, RowsThatAreTakenFromTheBatchMix) {
  TestModel model = with_input({3});
  model.integers("at", {0}).node("Gather", {"x", "at"}, "first").node("Sub", {"x", "first"}, "y");
  EXPECT_NE(why_mixed(model).find("(Gather)"), std::string::npos);
  TestModel reversed = with_input({3});
  reversed.integers("from", {-1}).integers("to", {-100}).integers("axis", {0}).integers("step", {-1});
  reversed.node("Slice", {"x", "from", "to", "axis", "step"}, "r").node("Add", {"x", "r"}, "y");
  EXPECT_NE(why_mixed(reversed).find("(Slice)"), std::string::npos);
}

TEST(RowProofTest, RowsWithoutElementsAreByRow) {
  TestModel model = with_input({2, 0});
  model.node("Transpose", {"x"}, "t", {{"perm", std::vector<int64_t>{0, 2, 1}}}).node("Relu", {"x"}, "y");
  EXPECT_EQ(why_mixed(model), "");
}

// What exporters write of a part that may be empty, as of a rotary embedding of
// all features.
TEST(RowProofTest, AnEmptyPartIsByRow) {
  TestModel model = with_input({4});
  model.integers("from", {4}).integers("to", {100}).integers("axis", {1});
  model.node("Slice", {"x", "from", "to", "axis"}, "rest").node("Neg", {"x"}, "n");
  model.node("Concat", {"n", "rest"}, "y", {{"axis", int64_t{1}}});
  EXPECT_EQ(why_mixed(model), "");
}

TEST(RowProofTest, WhatNoOutputNeedsMayMix) {
  TestModel model = with_input({3});
  model.node("Softmax", {"x"}, "unused", {{"axis", int64_t{0}}}).node("Relu", {"x"}, "y");
  EXPECT_EQ(why_mixed(model), "");
}

// 0, 1, ... for each row, [rows].
void number_rows(TestModel& model) {
  model.constant("first", make_scalar(DataType::kInt64, 0)).constant("step", make_scalar(DataType::kInt64, 1));
  model.constant("at", make_scalar(DataType::kInt64, 0));
  model.node("Shape", {"x"}, "shape").node("Gather", {"shape", "at"}, "n").node("Range", {"first", "n", "step"}, "r");
}

TEST(RowProofTest, PositionsThatStayWithinTheirRowAreByRow) {
  TestModel own = with_input({5, 3});
  own.input("i", {open("batch"), fixed(2), fixed(1)}, DataType::kInt64);
  own.node("GatherND", {"x", "i"}, "y", {{"batch_dims", int64_t{1}}});
  EXPECT_EQ(why_mixed(own), "");
  // torch's x[arange(batch), best], as of the last token of a text.
  TestModel best = with_input({5, 3});
  number_rows(best);
  best.integers("last", {1})
      .node("ReduceMax", {"x"}, "m", {{"axes", std::vector<int64_t>{2}}, {"keepdims", int64_t{0}}});
  best.node("ArgMax", {"m"}, "b", {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
  best.node("Unsqueeze", {"r", "last"}, "r2").node("Unsqueeze", {"b", "last"}, "b2");
  best.node("Concat", {"r2", "b2"}, "i", {{"axis", int64_t{1}}}).node("GatherND", {"x", "i"}, "y");
  EXPECT_EQ(why_mixed(best), "");
  TestModel put = with_input({5, 3});
  put.input("i", {open("batch")}, DataType::kInt64).input("u", {open("batch"), fixed(3)});
  number_rows(put);
  put.integers("last", {1}).node("Unsqueeze", {"r", "last"}, "r2").node("Unsqueeze", {"i", "last"}, "i2");
  put.node("Concat", {"r2", "i2"}, "at2", {{"axis", int64_t{1}}}).node("ScatterND", {"x", "at2", "u"}, "y");
  EXPECT_EQ(why_mixed(put), "");
}

TEST(RowProofTest, PositionsThatMayLeaveTheirRowMix) {
  TestModel any = with_input({3});
  any.input("i", {open("batch"), fixed(1)}, DataType::kInt64).node("GatherND", {"x", "i"}, "y");
  EXPECT_NE(why_mixed(any).find("(Gather)"), std::string::npos);
  // Rows of five entries: a 7 is an entry of the next row.
  TestModel far = with_input({5});
  far.input("i", {open("batch")}, DataType::kInt64);
  number_rows(far);
  far.constant("five", make_scalar(DataType::kInt64, 5)).integers("flat", {-1});
  far.node("Mul", {"r", "five"}, "begin").node("Add", {"i", "begin"}, "j").node("Reshape", {"x", "flat"}, "f");
  far.node("Gather", {"f", "j"}, "y");
  EXPECT_NE(why_mixed(far), "");
  // One row on: the place in the batch, reversed.
  TestModel turned = with_input({5});
  number_rows(turned);
  turned.constant("last", make_scalar(DataType::kInt64, 1))
      .node("Sub", {"n", "last"}, "l")
      .node("Sub", {"l", "r"}, "back");
  turned.node("Gather", {"x", "back"}, "y");
  EXPECT_NE(why_mixed(turned), "");
}

// Constants that hold a batch of one are changed by guess, which must be right.
TEST(RowProofTest, AModelFixedToOneRowIsByRowWhereItsShapesFollow) {
  TestModel model = with_input({4});
  model.integers("shape", {1, 2, 2}).integers("flat", {1, 4}).node("Reshape", {"x", "shape"}, "s");
  model.node("Exp", {"s"}, "e").node("Reshape", {"e", "flat"}, "y");
  EXPECT_EQ(why_mixed(model, true), "");
}

}  // namespace
}  // namespace foliot
