// Rows of a batch that operators refuse: each by what it brings, its neighbours not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/device/conformance/case_graph_builder.h"
#include "engine/device/conformance/session.h"
#include "engine/device/cpu/cpu_device.h"

namespace foliot {
namespace {

RowSet refused_of(const Graph& graph, const std::vector<Array>& inputs, uint32_t threads) {
  const auto device = make_cpu_device({.threads = threads, .lock_memory = false});
  auto program = lower_and_plan(*device, std::vector<Graph>{graph});
  EXPECT_TRUE(program.ok()) << program.status().message();
  Session session(*device, {std::move(program).value()}, 4096);
  session.load(0, 0);
  session.run(0, 0, inputs);
  return session.failed_rows();
}

// Indices that come through what keeps the order of rows, or turned, which does not.
Graph looking_up(OperatorKind kind, bool turned) {
  CaseGraphBuilder builder(3);
  ValueIndex indices = builder.input({3, 2}, DataType::kInt64);
  indices = builder.node(OperatorKind::kTranspose, {indices}, turned ? Shape{2, 3} : Shape{3, 2},
                         {{"permutation", turned ? std::vector<int64_t>{1, 0} : std::vector<int64_t>{0, 1}}},
                         DataType::kInt64);
  const Shape shape = turned ? Shape{2, 3} : Shape{3, 2};
  const ValueIndex zero = builder.constant({.type = DataType::kInt64, .shape = {}, .values = {0}});
  indices =
      builder.node(OperatorKind::kBinary, {indices, zero}, shape, {{"function", Function::kAdd}}, DataType::kInt64);
  const ValueIndex table =
      builder.constant({.type = DataType::kFloat32, .shape = {3, 2}, .values = {1, 2, 3, 4, 5, 6}});
  if (kind == OperatorKind::kGather) {
    builder.output(builder.node(kind, {table, indices}, {shape[0], shape[1], 2}, {{"axis", int64_t{0}}}));
  } else if (kind == OperatorKind::kGatherElements) {
    builder.output(builder.node(kind, {table, indices}, shape, {{"axis", int64_t{0}}}));
  } else {
    builder.output(
        builder.node(kind, {table, indices, table}, {3, 2}, {{"axis", int64_t{0}}, {"reduction", Function::kNone}}));
  }
  return builder.graph();
}

Array indices_of(std::vector<double> values) {
  return {.type = DataType::kInt64, .shape = {3, 2}, .values = std::move(values)};
}

TEST(RefusedRows, BringIndicesOutOfRange) {
  for (const OperatorKind kind :
       {OperatorKind::kGather, OperatorKind::kGatherElements, OperatorKind::kScatterElements}) {
    const Graph graph = looking_up(kind, false);
    EXPECT_EQ(refused_of(graph, {indices_of({0, 1, 2, -3, 1, 1})}, 1), RowSet());
    EXPECT_EQ(refused_of(graph, {indices_of({0, 1, 2, 3, 1, 1})}, 1), RowSet(0b010));
    EXPECT_EQ(refused_of(graph, {indices_of({-4, 1, 2, 2, 1, 9e15})}, 1), RowSet(0b101));
  }
}

TEST(RefusedRows, AreNotGuessed) {
  EXPECT_EQ(refused_of(looking_up(OperatorKind::kGather, true), {indices_of({0, 1, 2, 3, 1, 1})}, 1), RowSet());
}

Graph convolving(Function function) {
  CaseGraphBuilder builder(2);
  Random random(3);
  const ValueIndex x = builder.input({2, 16, 9, 9});
  const ValueIndex w = builder.constant(random_array(DataType::kFloat32, {16, 16, 3, 3}, random));
  builder.output(builder.node(OperatorKind::kConvolution, {x, w}, {2, 16, 9, 9},
                              {{"strides", std::vector<int64_t>{1, 1}},
                               {"dilations", std::vector<int64_t>{1, 1}},
                               {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                               {"groups", int64_t{1}}},
                              DataType::kFloat32, {activation(std::string(to_string(function)).c_str(), 0, 6)}));
  return builder.graph();
}

// Or the answer has NaN where onnxruntime's has.
TEST(RefusedRows, BringNanToAConvolutionThatLosesIt) {
  for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (const uint32_t threads : {1U, 2U}) {
      for (const Function function : {Function::kRelu, Function::kClip}) {
        Random random(5);
        Array x = random_array(DataType::kFloat32, {2, 16, 9, 9}, random);
        EXPECT_EQ(refused_of(convolving(function), {x}, threads), RowSet()) << threads;
        // A whole image of infinity has sums of opposite signs.
        std::fill(x.values.begin() + 16 * 81, x.values.end(), value);
        EXPECT_EQ(refused_of(convolving(function), {x}, threads), RowSet(0b10)) << threads << " " << value;
      }
    }
  }
}

// Relu after a convolution of the root of x, which is none below zero. `turned`: x has its batch in the second
// dimension.
Graph rooting(bool turned) {
  CaseGraphBuilder builder(3);
  Random random(4);
  const Shape shape = {3, 16, 5, 5}, given = turned ? Shape{16, 3, 5, 5} : shape;
  ValueIndex root = builder.node(OperatorKind::kUnary, {builder.input(given)}, given, {{"function", Function::kSqrt}});
  if (turned)
    root = builder.node(OperatorKind::kTranspose, {root}, shape, {{"permutation", std::vector<int64_t>{1, 0, 2, 3}}});
  const ValueIndex w = builder.constant(random_array(DataType::kFloat32, {16, 16, 1, 1}, random));
  builder.output(builder.node(OperatorKind::kConvolution, {root, w}, shape,
                              {{"strides", std::vector<int64_t>{1, 1}},
                               {"dilations", std::vector<int64_t>{1, 1}},
                               {"pads", std::vector<int64_t>{0, 0, 0, 0}},
                               {"groups", int64_t{1}}},
                              DataType::kFloat32, {activation("relu")}));
  return builder.graph();
}

Array positive(const Shape& shape) {
  Random random(6);
  return random_array(DataType::kFloat32, shape, random, {0, 1});
}

TEST(RefusedRows, MakeNanBeforeAConvolutionThatLosesIt) {
  for (const uint32_t threads : {1U, 2U}) {
    Array x = positive({3, 16, 5, 5});
    EXPECT_EQ(refused_of(rooting(false), {x}, threads), RowSet()) << threads;
    x.values[400 + 17] = -1;
    EXPECT_EQ(refused_of(rooting(false), {x}, threads), RowSet(0b010)) << threads;
  }
}

TEST(RefusedRows, AreAllWhereItIsNotKnownWhichOneMadeNan) {
  Array x = positive({16, 3, 5, 5});
  EXPECT_EQ(refused_of(rooting(true), {x}, 1), RowSet());
  x.values[17] = -1;
  EXPECT_EQ(refused_of(rooting(true), {x}, 1), RowSet(0b111));
}

}  // namespace
}  // namespace foliot
