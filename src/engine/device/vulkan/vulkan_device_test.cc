#include "engine/device/vulkan/vulkan_device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <mutex>

#include "engine/device/conformance/case_graph_builder.h"
#include "engine/device/conformance/conformance.h"
#include "engine/device/conformance/session.h"

namespace foliot {
namespace {

// What the validation layer said, of all tests.
class Messages {
 public:
  void add(std::string_view text) {
    const std::lock_guard lock(mutex_);
    texts_.emplace_back(text);
  }
  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(texts_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

Messages& messages() {
  static Messages all;
  return all;
}

// One for all tests: shaders are compiled once.
Result<std::shared_ptr<VulkanDriver>> driver() {
  static const Result<std::shared_ptr<VulkanDriver>> opened = [] {
    // lavapipe: dispatches of tests are small, and its threads cost more than they gain.
    ::setenv("LP_NUM_THREADS", "0", 0);
    return VulkanDriver::open({.which = "0", .on_message = [](std::string_view text) { messages().add(text); }});
  }();
  return opened;
}

std::unique_ptr<VulkanDevice> make_device() { return make_vulkan_device(driver().value()); }

// What lower() refuses: integers beyond what moves and compares them, narrow and wide floats, functions that drivers
// compute far from what is right, and kinds of operators without a shader.
bool is_unclaimed(const std::string& test) {
  for (const char* prefix : {"refused_rows_",
                             "matmul_INT",
                             "matmul_transposed_INT",
                             "matmul_FP64",
                             "matmul_transposed_FP64",
                             "unary_clip_INT64",
                             "unary_sinh",
                             "unary_cosh",
                             "unary_asinh",
                             "unary_acosh",
                             "binary_bit_",
                             "binary_shift_",
                             "lrn_",
                             "reduce_ends",
                             "reduce_INT64_",
                             "arg_reduce_",
                             "where_INT16",
                             "cast_through_half",
                             "gather_elements_",
                             "scatter_elements_",
                             "top_",
                             "cumulative_",
                             "recurrent_",
                             "tree_ensemble_",
                             "pair_coupling_",
                             "bfloat16_",
                             "quantize",
                             "block_matmul_"}) {
    if (test.starts_with(prefix)) return true;
  }
  if (test == "binary_mod" || test == "binary_fmod") return true;
  const bool computes = test.starts_with("unary_") || test.starts_with("binary_");
  return computes && (test.ends_with("_FP64") || test.ends_with("_INT16"));
}

const int kVulkanRegistered = driver().ok() ? register_conformance("vulkan", make_device, is_unclaimed) : 0;

// The layer says nothing in any test.
class NoMessages : public testing::Environment {
 public:
  void TearDown() override {
    for (const std::string& message : messages().take()) ADD_FAILURE() << message;
  }
};
const testing::Environment* const kNoMessages = testing::AddGlobalTestEnvironment(new NoMessages);

class VulkanDeviceTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(driver().ok()) << driver().status().message(); }
};

std::vector<Array> run_graph(const Graph& graph, const std::vector<Array>& inputs) {
  const auto device = make_device();
  Session session(*device, {lower_and_plan(*device, std::vector<Graph>{graph}).value()}, 4096);
  session.load(0, 0);
  const auto bytes = session.run(0, 0, inputs);
  std::vector<Array> outputs;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const Value& value = graph.values[graph.outputs[i]];
    outputs.push_back(from_bytes(value.type, value.shape, bytes[i]));
  }
  return outputs;
}

TEST_F(VulkanDeviceTest, RegistersTheConformanceSuite) { EXPECT_GT(kVulkanRegistered, 600); }

TEST_F(VulkanDeviceTest, KindNamesTheDevice) {
  const auto device = make_device();
  EXPECT_EQ(device->kind(), vulkan_kind(driver().value()->gpu().name));
  EXPECT_EQ(vulkan_kind("llvmpipe (LLVM 15.0.6, 256 bits)"), "vulkan:llvmpipe-LLVM-15.0.6-256-bits");
  EXPECT_TRUE(device->runs(device->another()->fingerprint()));
  EXPECT_FALSE(device->runs("another driver lowering=1"));
}

TEST_F(VulkanDeviceTest, AnotherDeviceThanThereIsGivesTheList) {
  for (const char* which : {"99", "no such GPU"}) {
    const auto opened = VulkanDriver::open({.which = which});
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.status().code(), StatusCode::kNotFound);
    EXPECT_NE(opened.status().message().find("0 '"), std::string::npos) << opened.status().message();
  }
}

TEST_F(VulkanDeviceTest, PagesAreAPowerOfTwo) {
  const Status status = make_device()->allocate({.page_bytes = 3 * 4096, .page_count = 1});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("--page-size"), std::string::npos) << status.message();
}

// A maximum or a clamp of the shading language may give the other operand.
TEST_F(VulkanDeviceTest, NotANumberStaysOne) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CaseGraphBuilder builder;
  const ValueIndex x = builder.input({1, 1, 1, 4});
  const Shape shape{1, 1, 1, 4};
  const ValueIndex one = builder.constant({.type = DataType::kFloat32, .shape = {1, 1, 1, 1}, .values = {1}});
  const std::vector<int64_t> ones{1, 1}, zeros(4, 0);
  for (const Function function : {Function::kRelu, Function::kClip, Function::kHardSigmoid, Function::kHardSwish,
                                  Function::kTanh, Function::kErf, Function::kGelu, Function::kSign, Function::kAtan}) {
    builder.output(
        builder.node(OperatorKind::kUnary, {x}, shape, {{"function", function}, {"alpha", 0.5}, {"beta", 2.0}}));
  }
  for (const Function function : {Function::kMin, Function::kMax, Function::kPow}) {
    builder.output(builder.node(OperatorKind::kBinary, {x, one}, shape, {{"function", function}}));
    builder.output(builder.node(OperatorKind::kBinary, {one, x}, shape, {{"function", function}}));
  }
  builder.output(builder.node(OperatorKind::kConvolution, {x, one}, shape,
                              {{"strides", ones}, {"dilations", ones}, {"pads", zeros}, {"groups", int64_t{1}}},
                              DataType::kFloat32, {activation("relu")}));
  builder.output(builder.node(OperatorKind::kMaxPool, {x}, shape,
                              {{"kernel", std::vector<int64_t>{1, 3}},
                               {"strides", ones},
                               {"dilations", ones},
                               {"pads", std::vector<int64_t>{0, 1, 0, 1}}}));
  builder.output(builder.node(OperatorKind::kSoftmax, {x}, shape, {{"axis", int64_t{3}}, {"log", int64_t{0}}}));
  for (const Function function : {Function::kMax, Function::kMin, Function::kLogSumExp})
    builder.output(
        builder.node(OperatorKind::kReduce, {x}, {1, 1, 1},
                     {{"function", function}, {"axes", std::vector<int64_t>{3}}, {"keep_dims", int64_t{0}}}));
  const std::vector<Array> outputs =
      run_graph(builder.graph(), {{.type = DataType::kFloat32, .shape = shape, .values = {-1, 0.5, nan, 3}}});
  for (size_t i = 0; i < outputs.size(); ++i) {
    // 1 to the power of anything is 1.
    const bool is_power_of_one = i == 14;
    const double value = outputs[i].values[outputs[i].values.size() == 1 ? 0 : 2];
    EXPECT_EQ(std::isnan(value), !is_power_of_one) << "output " << i << " is " << value;
  }
}

TEST_F(VulkanDeviceTest, IndicesOutOfRangeReadAsZero) {
  CaseGraphBuilder builder;
  const ValueIndex indices = builder.input({4}, DataType::kInt64);
  const ValueIndex table =
      builder.constant({.type = DataType::kFloat32, .shape = {3, 2}, .values = {1, 2, 3, 4, 5, 6}});
  builder.output(builder.node(OperatorKind::kGather, {table, indices}, {4, 2}, {{"axis", int64_t{0}}}));
  const std::vector<Array> outputs =
      run_graph(builder.graph(), {{.type = DataType::kInt64, .shape = {4}, .values = {2, 3, -4, -3}}});
  EXPECT_EQ(outputs[0].values, (std::vector<double>{5, 6, 0, 0, 0, 0, 1, 2}));
}

Graph long_product(int64_t depth) {
  CaseGraphBuilder builder;
  builder.output(builder.node(OperatorKind::kMatMul, {builder.input({8, depth}), builder.input({depth, 1})}, {8, 1},
                              {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{0}}, {"alpha", 1.0}}));
  return builder.graph();
}

// lavapipe ends an invocation silently after 65,535 rounds of its loops.
TEST_F(VulkanDeviceTest, ALoopThatIsTooLongIsRefused) {
  const auto limit = static_cast<int64_t>(kLoopRoundsMax);
  const std::vector<double> ones(kLoopRoundsMax, 1), rows(8 * kLoopRoundsMax, 1);
  const std::vector<Array> outputs =
      run_graph(long_product(limit), {{.shape = {8, limit}, .values = rows}, {.shape = {limit, 1}, .values = ones}});
  EXPECT_EQ(outputs[0].values, std::vector<double>(8, static_cast<double>(limit)));
  const std::vector<Graph> graphs{long_product(limit + 1)};
  const auto lowered = make_device()->lower(graphs, "dense");
  ASSERT_FALSE(lowered.ok());
  EXPECT_NE(lowered.status().message().find("60001"), std::string::npos) << lowered.status().message();
}

// By the device's clock, as the host's has it.
TEST_F(VulkanDeviceTest, AnExecBeginsAndEndsWhileItIsRun) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return TimePoint::from_nanoseconds(time.tv_sec * 1'000'000'000 + time.tv_nsec);
  };
  const auto device = make_device();
  Session session(*device, {lower_and_plan(*device, std::vector<Graph>{long_product(64)}).value()}, 4096);
  session.load(0, 0);
  const TimePoint before = now();
  session.run_range(0, 0, {});
  const VulkanExecTimes times = device->exec_times();
  EXPECT_LE(before, times.begin);
  EXPECT_LE(times.begin, times.end);
  EXPECT_LE(times.end, now());
}

// Shapes that no case names, beside the reference.
TEST_F(VulkanDeviceTest, RandomShapesAreRight) {
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto pick = [&](int64_t most) { return static_cast<int64_t>(1 + random.below(static_cast<uint64_t>(most))); };
    CaseGraphBuilder builder;
    const int64_t groups = pick(3), ins = pick(5), outs = pick(9), kernel = pick(3), stride = pick(2),
                  pad = pick(2) - 1;
    const int64_t n = pick(3), height = kernel + pick(9), width = kernel + pick(9);
    const auto extent = [&](int64_t from) { return (from + 2 * pad - kernel) / stride + 1; };
    const Shape y{n, groups * outs, extent(height), extent(width)};
    const ValueIndex x = builder.input({n, groups * ins, height, width});
    const ValueIndex w =
        builder.constant(random_array(DataType::kFloat32, {groups * outs, ins, kernel, kernel}, random, {-0.5, 0.5}));
    const ValueIndex channel = builder.input({groups * outs, 1, 1});
    const ValueIndex convolved = builder.node(OperatorKind::kConvolution, {x, w, kNoValue, channel}, y,
                                              {{"strides", std::vector<int64_t>(2, stride)},
                                               {"dilations", std::vector<int64_t>(2, 1)},
                                               {"pads", std::vector<int64_t>(4, pad)},
                                               {"groups", groups}},
                                              DataType::kFloat32, {combination("mul", 3), activation("relu")});
    const int64_t columns = pick(17);
    const ValueIndex b = builder.constant(random_array(DataType::kFloat32, {y[3], columns}, random, {-0.5, 0.5}));
    builder.output(builder.node(OperatorKind::kMatMul, {convolved, b}, {y[0], y[1], y[2], columns},
                                {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{0}}, {"alpha", 0.5}}));
    builder.output(convolved);
    std::vector<Array> inputs;
    for (const ValueIndex input : builder.graph().inputs)
      inputs.push_back(random_array(DataType::kFloat32, builder.graph().values[input].shape, random));
    const std::vector<Array> outputs = run_graph(builder.graph(), inputs), expected = evaluate(builder.graph(), inputs);
    for (size_t i = 0; i < expected.size(); ++i)
      for (size_t j = 0; j < expected[i].values.size(); ++j)
        ASSERT_NEAR(outputs[i].values[j], expected[i].values[j], 1e-4) << "output " << i << ", element " << j;
  }
}

class UnreadableWeights : public WeightsSource {
 public:
  explicit UnreadableWeights(uint64_t bytes) : bytes_(bytes) {}
  uint64_t bytes() const override { return bytes_; }
  Status read(uint64_t, std::span<std::byte>) override { return Status::internal("the disk is gone"); }

 private:
  uint64_t bytes_;
};

TEST_F(VulkanDeviceTest, FailedLoadLeavesTheProgramUnloaded) {
  CaseGraphBuilder builder;
  const ValueIndex w = builder.constant({.type = DataType::kFloat32, .shape = {4}, .values = {1, 2, 3, 4}});
  builder.output(builder.node(OperatorKind::kBinary, {builder.input({4}), w}, {4}, {{"function", Function::kAdd}}));
  const auto device = make_device();
  PlannedProgram program = lower_and_plan(*device, std::vector<Graph>{builder.graph()}).value();
  ASSERT_TRUE(
      device->allocate({.page_bytes = 4096, .page_count = 1, .io_cache_bytes = 4096, .workspace_bytes = 4096}).ok());
  auto executable = device->preload(program.plans, std::make_shared<UnreadableWeights>(program.weights.size())).value();
  const std::vector<PageIndex> pages{0};
  for (int attempt = 0; attempt < 2; ++attempt) EXPECT_EQ(executable->load(pages).message(), "the disk is gone");
}

TEST_F(VulkanDeviceTest, MoreMemoryThanThereIsIsRefusedWithTheNumbers) {
  const Status status = make_device()->allocate({.page_bytes = 4096, .io_cache_bytes = uint64_t{1} << 50});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("io cache"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace foliot
