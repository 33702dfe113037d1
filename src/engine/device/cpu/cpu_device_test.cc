#include "engine/device/cpu/cpu_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/device/conformance/bump_planner.h"
#include "engine/device/conformance/case_graph_builder.h"
#include "engine/device/conformance/conformance.h"
#include "engine/device/conformance/session.h"
#include "engine/device/cpu/instruction_set.h"
#include "engine/device/tree_node.h"

namespace foliot {
namespace {

DeviceFactory with_threads(uint32_t threads) {
  return [threads] { return make_cpu_device({.threads = threads, .lock_memory = false}); };
}

const int kRegistered =
    register_conformance("cpu_1_thread", with_threads(1)) + register_conformance("cpu_2_threads", with_threads(2)) +
    register_conformance("cpu_2_lanes",
                         [] { return make_cpu_device({.threads = 2, .lanes = 2, .lock_memory = false}); });

TEST(CpuDevice, RegistersTheConformanceSuite) { EXPECT_GT(kRegistered, 600); }

TEST(CpuDevice, FingerprintDistinguishesThreads) {
  EXPECT_NE(with_threads(1)()->fingerprint(), with_threads(2)()->fingerprint());
  EXPECT_EQ(with_threads(1)()->fingerprint().find("cpu oneDNN "), 0u);
  EXPECT_EQ(threads_of(with_threads(2)()->fingerprint()), 2u);
  for (const char* other : {"", "cuda 1", "cpu threads=", "cpu threads=2 lanes=2", "cpu threads=99999999999"}) {
    EXPECT_FALSE(threads_of(other)) << other;
  }
  EXPECT_EQ(with_threads(1)()->kind(), "cpu");
}

TEST(CpuDevice, RunsWhatWasMadeForTheSameInstructions) {
  const auto device = with_threads(1)();
  EXPECT_TRUE(device->runs(device->fingerprint()));
  EXPECT_TRUE(device->runs(with_threads(2)()->fingerprint()));
  std::string other = device->fingerprint();
  const std::string set(name_of(instruction_set()));
  other.replace(other.find(set), set.size(), set == "avx2" ? "avx512_core" : "avx2");
  EXPECT_FALSE(device->runs(other));
  EXPECT_FALSE(device->runs(""));
}

Graph gather_graph() {
  CaseGraphBuilder builder;
  const ValueIndex indices = builder.input({4}, DataType::kInt64);
  const ValueIndex table =
      builder.constant({.type = DataType::kFloat32, .shape = {3, 2}, .values = {1, 2, 3, 4, 5, 6}});
  builder.output(builder.node(OperatorKind::kGather, {table, indices}, {4, 2}, {{"axis", int64_t{0}}}));
  return builder.graph();
}

Graph tree_graph(const std::vector<double>& nodes, int64_t rows) {
  CaseGraphBuilder builder;
  const ValueIndex x = builder.input({rows, 3});
  const auto count = static_cast<int64_t>(nodes.size() / sizeof(TreeNode));
  const std::vector<ValueIndex> inputs{
      x, builder.constant({.type = DataType::kUint8, .shape = {count, sizeof(TreeNode)}, .values = nodes}),
      builder.constant({.type = DataType::kFloat32, .shape = {2, 1}, .values = {1, 2}}),
      builder.constant({.type = DataType::kInt32, .shape = {2}, .values = {-1e9, 1e9}})};
  builder.output(builder.node(OperatorKind::kTreeEnsemble, inputs, {rows, 4},
                              {{"function", Function::kSum}, {"trees", int64_t{5}}, {"depth", int64_t{100}}}));
  return builder.graph();
}

// Weights are not checked when they are loaded: whatever is in them, trees read and write
// within their tensors and come to an end. Every tree adds one leaf's value.
TEST(CpuDevice, TreesOfAnyBytesStayWithinTheirTensors) {
  Random random(1);
  for (int turn = 0; turn < 50; ++turn) {
    std::vector<double> nodes(20 * sizeof(TreeNode));
    for (double& byte : nodes) byte = static_cast<double>(turn == 0 ? 255 : random.below(256));
    for (const int64_t rows : {int64_t{1}, int64_t{16}}) {
      const auto device = with_threads(1)();
      const std::vector<Graph> graphs{tree_graph(nodes, rows)};
      Session session(*device, {lower_and_plan(*device, graphs).value()}, 4096);
      session.load(0, 0);
      const std::vector<Array> inputs{random_array(DataType::kFloat32, {rows, 3}, random)};
      const Array output = from_bytes(DataType::kFloat32, {rows, 4}, session.run(0, 0, inputs)[0]);
      for (size_t i = 0; i < output.values.size(); i += 4) {
        const double sum = output.values[i] + output.values[i + 3];
        EXPECT_TRUE(sum >= 5 && sum <= 10 && output.values[i + 1] == 0 && output.values[i + 2] == 0) << sum;
      }
    }
  }
}

TEST(CpuDevice, TreesNeedTheirScratchpad) {
  const auto device = with_threads(1)();
  const std::vector<Graph> graphs{tree_graph(std::vector<double>(20 * sizeof(TreeNode)), 1)};
  PlannedProgram program = lower_and_plan(*device, graphs).value();
  Operator& trees = program.plans[0].operators[0];
  program.plans[0].tensors[trees.scratchpad].bytes -= 8;
  ASSERT_TRUE(device->allocate({.page_count = 1, .io_cache_bytes = 1 << 20, .workspace_bytes = 1 << 20}).ok());
  const auto executable = device->preload(program.plans, memory_weights(program.weights));
  EXPECT_FALSE(executable.ok() && executable.value()->prepare(0, 1).ok());
}

// A client's bad index must neither read elsewhere nor fail the batch.
TEST(CpuDevice, GatherOutOfRangeReadsAsZero) {
  const auto device = with_threads(1)();
  const std::vector<Graph> graphs{gather_graph()};
  Session session(*device, {lower_and_plan(*device, graphs).value()}, 4096);
  session.load(0, 0);
  const std::vector<Array> inputs{{.type = DataType::kInt64, .shape = {4}, .values = {2, 3, -4, -3}}};
  const Array output = from_bytes(DataType::kFloat32, {4, 2}, session.run(0, 0, inputs)[0]);
  EXPECT_EQ(output.values, (std::vector<double>{5, 6, 0, 0, 0, 0, 1, 2}));
}

// Dividing by a client's zero must not end the process.
TEST(CpuDevice, IntegerDivisionByZeroGivesZero) {
  CaseGraphBuilder builder;
  const ValueIndex a = builder.input({3}, DataType::kInt64), b = builder.input({3}, DataType::kInt64);
  for (const Function function : {Function::kDiv, Function::kMod})
    builder.output(builder.node(OperatorKind::kBinary, {a, b}, {3}, {{"function", function}}, DataType::kInt64));
  const auto device = with_threads(1)();
  const std::vector<Graph> graphs{builder.graph()};
  Session session(*device, {lower_and_plan(*device, graphs).value()}, 4096);
  session.load(0, 0);
  const std::vector<Array> inputs{{.type = DataType::kInt64, .shape = {3}, .values = {7, -9223372036854775808.0, 7}},
                                  {.type = DataType::kInt64, .shape = {3}, .values = {0, -1, 2}}};
  const auto outputs = session.run(0, 0, inputs);
  EXPECT_EQ(from_bytes(DataType::kInt64, {3}, outputs[0]).values, (std::vector<double>{0, -9223372036854775808.0, 3}));
  EXPECT_EQ(from_bytes(DataType::kInt64, {3}, outputs[1]).values, (std::vector<double>{0, 0, 1}));
}

TEST(CpuDevice, UnknownFunctionNamesTheNode) {
  CaseGraphBuilder builder;
  const ValueIndex x = builder.input({4});
  builder.output(builder.node(OperatorKind::kUnary, {x}, {4}, {{"function", Function::kMean}}));
  const std::vector<Graph> graphs{builder.graph()};
  const auto lowered = with_threads(1)()->lower(graphs, "blocked");
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.status().code(), StatusCode::kUnimplemented);
  EXPECT_NE(lowered.status().message().find("node 0"), std::string::npos) << lowered.status().message();
}

constexpr int64_t kHeight = 30, kWidth = 33;

// One element of a 3x3 convolution of x[1, 64, kHeight, kWidth] with w[64, 64, 3, 3].
double convolved(const Array& x, const Array& w, int64_t channel, int64_t row, int64_t column) {
  double sum = 0;
  for (int64_t tap = 0; tap < 64 * 9; ++tap) {
    const int64_t from = tap / 9, y = row + tap % 9 / 3 - 1, z = column + tap % 3 - 1;
    if (y < 0 || y >= kHeight || z < 0 || z >= kWidth) continue;
    sum += w.values[static_cast<size_t>(channel * 64 * 9 + tap)] *
           x.values[static_cast<size_t>((from * kHeight + y) * kWidth + z)];
  }
  return sum;
}

// Wide enough for Winograd's algorithm, with what its kernel fuses and what it does not.
TEST(CpuDevice, WideConvolutionsAreRight) {
  Random random(1);
  const Shape shape{1, 64, kHeight, kWidth};
  const Array x = random_array(DataType::kFloat32, shape, random);
  const Array w = random_array(DataType::kFloat32, {64, 64, 3, 3}, random, {-0.1, 0.1});
  CaseGraphBuilder builder;
  const ValueIndex input = builder.input(shape), weights = builder.constant(w);
  const auto convolve = [&](std::vector<ValueIndex> inputs, std::vector<PostOperation> post_operations) {
    const std::vector<int64_t> ones{1, 1}, pads{1, 1, 1, 1};
    builder.output(builder.node(OperatorKind::kConvolution, std::move(inputs), shape,
                                {{"strides", ones}, {"dilations", ones}, {"pads", pads}, {"groups", int64_t{1}}},
                                DataType::kFloat32, std::move(post_operations)));
  };
  convolve({input, weights}, {activation("relu")});
  convolve({input, weights, kNoValue, input}, {activation("silu"), combination("add", 3)});
  const std::vector<Graph> graphs{builder.graph()};
  for (const size_t layout : {size_t{0}, size_t{1}}) {
    const auto device = with_threads(1)();
    PlannedProgram program = lower_and_plan(*device, graphs, layout).value();
    const auto winograd = std::ranges::count_if(program.plans[0].operators, [](const Operator& operation) {
      return operation.kernel.find("wino") != std::string::npos;
    });
    EXPECT_EQ(winograd, device->fingerprint().find("avx512") == std::string::npos ? 0 : 2);
    Session session(*device, {std::move(program)}, 4096);
    session.load(0, 0);
    const auto outputs = session.run(0, 0, std::vector<Array>{x});
    const Array relu = from_bytes(DataType::kFloat32, shape, outputs[0]);
    const Array silu = from_bytes(DataType::kFloat32, shape, outputs[1]);
    for (size_t i = 0; i < x.values.size(); i += 13) {
      const auto at = static_cast<int64_t>(i);
      const double sum = convolved(x, w, at / (kHeight * kWidth), at / kWidth % kHeight, at % kWidth);
      ASSERT_NEAR(relu.values[i], std::max(sum, 0.0), 1e-5) << i;
      ASSERT_NEAR(silu.values[i], sum / (1 + std::exp(-sum)) + x.values[i], 1e-5) << i;
    }
  }
}

// Threads share out heads, and queries where heads do not divide.
TEST(CpuDevice, AttentionGivesTheSameBitsOnAnyNumberOfThreads) {
  CaseGraphBuilder builder;
  Random random(1);
  const Shape queries{5, 131, 24}, keys{5, 300, 24};
  std::vector<ValueIndex> values{builder.input(queries), builder.input(keys), builder.input(keys)};
  builder.output(builder.node(OperatorKind::kAttention, std::move(values), queries,
                              {{"alpha", 0.2}, {"transpose_k", int64_t{0}}}));
  const std::vector<Graph> graphs{builder.graph()};
  std::vector<Array> inputs;
  for (const Shape& shape : {queries, keys, keys}) inputs.push_back(random_array(DataType::kFloat32, shape, random));
  const auto run_with = [&](uint32_t threads) {
    const auto device = with_threads(threads)();
    Session session(*device, {lower_and_plan(*device, graphs).value()}, 4096);
    session.load(0, 0);
    return session.run(0, 0, inputs);
  };
  const auto alone = run_with(1);
  for (const uint32_t threads : {2u, 3u}) EXPECT_EQ(run_with(threads), alone) << threads << " threads";
}

// oneDNN does post-operations value by value where its kernel multiplies matrices, a
// hundred times as slowly as on their own.
TEST(CpuDevice, KernelsThatMultiplyMatricesHaveNothingFusedIntoThem) {
  const Shape shape{1, 64, 20, 20};
  const std::vector<std::vector<PostOperation>> chains{{activation("silu"), combination("add", 3)},
                                                       {combination("add", 3), activation("gelu")},
                                                       {activation("tanh"), combination("mul", 3)}};
  for (const int64_t groups : {int64_t{1}, int64_t{64}}) {
    for (const int64_t kernel : {int64_t{1}, int64_t{3}}) {
      CaseGraphBuilder builder;
      Random random(1);
      const ValueIndex input = builder.input(shape), other = builder.input(shape);
      const ValueIndex weights =
          builder.constant(random_array(DataType::kFloat32, {64, 64 / groups, kernel, kernel}, random));
      const std::vector<int64_t> ones{1, 1}, pads(4, kernel / 2);
      for (const std::vector<PostOperation>& chain : chains)
        builder.output(builder.node(OperatorKind::kConvolution, {input, weights, kNoValue, other}, shape,
                                    {{"strides", ones}, {"dilations", ones}, {"pads", pads}, {"groups", groups}},
                                    DataType::kFloat32, chain));
      const auto device = with_threads(1)();
      const std::vector<Graph> graphs{builder.graph()};
      for (const size_t layout : {size_t{0}, size_t{1}}) {
        const PlannedProgram program = lower_and_plan(*device, graphs, layout).value();
        for (const Operator& operation : program.plans[0].operators) {
          EXPECT_TRUE(operation.post_operations.empty() || operation.kernel.find("gemm") == std::string::npos)
              << operation.kernel << " of " << groups << " groups, window " << kernel;
        }
      }
    }
  }
}

// One pass over the result instead of two.
TEST(CpuDevice, ASumThatIsSplitOffTakesTheActivationBehindIt) {
  const Shape shape{1, 64, 20, 20};
  CaseGraphBuilder builder;
  Random random(1);
  const ValueIndex input = builder.input(shape), other = builder.input(shape);
  const ValueIndex weights = builder.constant(random_array(DataType::kFloat32, {64, 1, 3, 3}, random));
  const std::vector<int64_t> ones{1, 1}, pads(4, 1);
  builder.output(builder.node(OperatorKind::kConvolution, {input, weights, kNoValue, other}, shape,
                              {{"strides", ones}, {"dilations", ones}, {"pads", pads}, {"groups", int64_t{64}}},
                              DataType::kFloat32, {combination("add", 3), activation("gelu")}));
  const auto device = with_threads(1)();
  const std::vector<Graph> graphs{builder.graph()};
  const PlannedProgram program = lower_and_plan(*device, graphs).value();
  size_t sums = 0;
  for (const Operator& operation : program.plans[0].operators) {
    EXPECT_NE(operation.kind, OperatorKind::kUnary);
    if (operation.kind != OperatorKind::kBinary) continue;
    ++sums;
    ASSERT_EQ(operation.post_operations.size(), 1u);
    EXPECT_EQ(operation.post_operations[0].function, Function::kGelu);
  }
  EXPECT_EQ(sums, 1u);
}

class FailingWeights : public WeightsSource {
 public:
  explicit FailingWeights(uint64_t bytes) : bytes_(bytes) {}
  uint64_t bytes() const override { return bytes_; }
  Status read(uint64_t, std::span<std::byte>) override { return Status::internal("the disk is gone"); }

 private:
  uint64_t bytes_;
};

TEST(CpuDevice, FailedLoadLeavesTheProgramUnloaded) {
  const auto device = with_threads(1)();
  const std::vector<Graph> graphs{gather_graph()};
  PlannedProgram program = lower_and_plan(*device, graphs).value();
  ASSERT_TRUE(
      device->allocate({.page_bytes = 4096, .page_count = 1, .io_cache_bytes = 4096, .workspace_bytes = 4096}).ok());
  auto executable = device->preload(program.plans, std::make_shared<FailingWeights>(program.weights.size())).value();
  const std::vector<PageIndex> pages{0};
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Status loaded = executable->load(pages);
    EXPECT_EQ(loaded.message(), "the disk is gone");
  }
}

}  // namespace
}  // namespace foliot
