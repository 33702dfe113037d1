#include "engine/compiler/compiler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>

#include "engine/compiler/program_runner.h"
#include "engine/compiler/test_model.h"
#include "engine/device/cpu/cpu_device.h"
#include "engine/program/metadata.h"

namespace foliot {
namespace {

class CompilerTest : public testing::Test {
 protected:
  CompilerTest() {
    std::string name = testing::TempDir() + "foliot_compiler_XXXXXX";
    folder_ = ::mkdtemp(name.data());
    options_.batch_sizes = {1, 2, 4};
    options_.page_bytes = uint64_t{1} << 20;
    options_.profile_runs = 1;
  }
  ~CompilerTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path path() const { return folder_ / "model.onnx"; }
  std::unique_ptr<CpuDevice> device() const { return make_cpu_device({.threads = 1, .lock_memory = false}); }
  void write(const TestModel& model) const { std::ofstream(path(), std::ios::binary) << serialize(model); }

  Result<CompiledProgram> compiled(const TestModel& model) {
    write(model);
    const auto fresh = device();
    return compile(path(), options_, *fresh, [&](std::string_view step, double share) {
      EXPECT_FALSE(step.empty());
      EXPECT_GE(share, 0);
      EXPECT_LE(share, 1);
    });
  }

  // Runs one plan; all inputs and outputs are float32.
  std::vector<std::vector<float>> run(const CompiledProgram& compiled, size_t plan_index,
                                      const std::vector<std::vector<float>>& inputs) const {
    const auto fresh = device();
    auto runner = ProgramRunner::create(*fresh, compiled.program, compiled.weights);
    EXPECT_TRUE(runner.ok()) << runner.status().message();
    const Plan& plan = compiled.program.plans[plan_index];
    std::vector<std::byte> input(plan.input_bytes), output(plan.output_bytes);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& tensor = plan.tensors[plan.inputs[i]];
      EXPECT_EQ(tensor.bytes, inputs[i].size() * sizeof(float));
      std::memcpy(input.data() + tensor.offset, inputs[i].data(), tensor.bytes);
    }
    EXPECT_TRUE((*runner)->run(plan_index, input, output).ok());
    std::vector<std::vector<float>> results;
    for (TensorIndex index : plan.outputs) {
      const Tensor& tensor = plan.tensors[index];
      results.emplace_back(tensor.bytes / sizeof(float));
      std::memcpy(results.back().data(), output.data() + tensor.offset, tensor.bytes);
    }
    return results;
  }

  std::filesystem::path folder_;
  CompileOptions options_;
};

// y = relu(x * w + b)
TestModel perceptron(OnnxDimension batch) {
  TestModel model;
  model.input("x", {std::move(batch), fixed(3)}).output("y");
  model.constant("w", make_constant({3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6}));
  model.constant("b", make_constant({2}, std::vector<float>{-10, 1}));
  model.node("Gemm", {"x", "w", "b"}, "h").node("Relu", {"h"}, "y");
  return model;
}

// As many runs as are asked for would take for hours.
TEST_F(CompilerTest, OneRunMakesTheSeedProfileWhereItTakesAllItsTime) {
  options_.profile_runs = std::numeric_limits<uint32_t>::max();
  options_.profile_time = Duration();
  const auto compiled = this->compiled(perceptron(open("batch")));
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  for (const Duration duration : compiled->program.buckets.front().seed_exec) EXPECT_GT(duration, Duration());
}

TEST_F(CompilerTest, CompilesForEveryBatchSize) {
  for (const OnnxDimension& batch : {open("batch"), open(""), fixed(1)}) {
    const auto result = compiled(perceptron(batch));
    ASSERT_TRUE(result.ok()) << result.status().message();
    const Program& program = result->program;
    EXPECT_TRUE(program.batching);
    EXPECT_EQ(program.batch_sizes, options_.batch_sizes);
    EXPECT_EQ(program.inputs[0].shape, Shape{3});
    EXPECT_EQ(program.outputs[0].shape, Shape{2});
    EXPECT_EQ(program.weights_bytes, result->weights.size());
    EXPECT_TRUE(check_program(program).ok()) << check_program(program).message();
    EXPECT_EQ(run(*result, 0, {{1, 1, 1}})[0], (std::vector<float>{0, 13}));
    EXPECT_EQ(run(*result, 1, {{1, 1, 1, 2, 0, 2}})[0], (std::vector<float>{0, 13, 2, 17}));
  }
}

TEST_F(CompilerTest, MakesTheSameProgramEveryTime) {
  const auto one = compiled(perceptron(fixed(1)));
  const auto two = compiled(perceptron(fixed(1)));
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->weights, two->weights);
  // All but what was measured.
  const auto unmeasured = [](Program program) {
    program.seed_load = {};
    program.operator_ends.clear();
    for (ProgramBucket& bucket : program.buckets) std::ranges::fill(bucket.seed_exec, Duration());
    return encode_metadata(program);
  };
  EXPECT_EQ(unmeasured(one->program), unmeasured(two->program));
}

TEST_F(CompilerTest, MakesTheFirstSizeAloneWithTheInterfaceOfAll) {
  const auto all = compiled(perceptron(open("batch")));
  options_.first_size_only = true;
  const auto first = compiled(perceptron(open("batch")));
  ASSERT_TRUE(all.ok() && first.ok()) << first.status().message();
  EXPECT_TRUE(check_program(first->program).ok()) << check_program(first->program).message();
  EXPECT_GT(all->program.plans.size(), 1u);
  EXPECT_EQ(first->program.batch_sizes, std::vector<uint32_t>{1});
  ASSERT_EQ(first->program.plans.size(), 1u);
  ASSERT_EQ(first->program.buckets[0].seed_exec.size(), 1u);
  EXPECT_GT(first->program.buckets[0].seed_exec[0], Duration());
  EXPECT_EQ(first->program.operator_ends.size(), first->program.plans[0].operators.size()) << "it can be cut at once";
  EXPECT_TRUE(first->program.batching);
  EXPECT_EQ(first->program.inputs[0].shape, all->program.inputs[0].shape);
  EXPECT_EQ(first->program.outputs[0].shape, all->program.outputs[0].shape);
}

// Whether rows can be batched is known before a larger batch size is compiled.
TEST_F(CompilerTest, DoesNotBatchTheFirstSizeOfAModelThatMixesRows) {
  options_.first_size_only = true;
  for (const OnnxDimension& batch : {open("batch"), fixed(1), fixed(3)}) {
    TestModel model;
    model.input("x", {batch, fixed(3)}).output("y").node("Softmax", {"x"}, "y", {{"axis", int64_t{0}}});
    const auto result = compiled(model);
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_FALSE(result->program.batching);
    EXPECT_EQ(result->program.plans.size(), batch.value == -1 ? options_.batch_sizes.size() : 1);
    EXPECT_TRUE(check_program(result->program).ok()) << check_program(result->program).message();
  }
}

TEST_F(CompilerTest, FreesABatchThatTheExporterFixed) {
  TestModel model;
  model.input("x", {fixed(1), fixed(2), fixed(2), fixed(2)}).integers("flat", {1, 8}).output("y");
  model.weights("w", {2, 2, 1, 1}).weights("v", {8, 3});
  model.node("Conv", {"x", "w"}, "a").node("Reshape", {"a", "flat"}, "b").node("MatMul", {"b", "v"}, "y");
  const auto result = compiled(model);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->program.batching);
  const std::vector<float> row{1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> rows(row);
  rows.insert(rows.end(), row.begin(), row.end());
  const auto one = run(*result, 0, {row})[0];
  const auto both = run(*result, 1, {rows})[0];
  for (size_t i = 0; i < both.size(); ++i) EXPECT_NEAR(both[i], one[i % 3], 1e-4);
}

TEST_F(CompilerTest, DoesNotBatchAModelThatMixesRows) {
  TestModel model;
  model.input("x", {open("batch"), fixed(3)}).output("y").node("Softmax", {"x"}, "y", {{"axis", int64_t{0}}});
  const auto result = compiled(model);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_FALSE(result->program.batching);
  ASSERT_EQ(result->program.notes.size(), 1u);
  EXPECT_EQ(result->program.notes[0],
            "compiled without batching: node 'node_y' (Softmax): it works along the dimension in which the rows lie; "
            "requests must have exactly one of the sizes batch = [1, 2, 4]: list others in model.toml, such as "
            "buckets = {batch = [1, 2, 4, 5]}");
  EXPECT_EQ(result->program.batch_sizes, std::vector<uint32_t>{1});
  EXPECT_EQ(result->program.buckets[1].dimensions, (std::map<std::string, int64_t>{{"batch", 2}}));
  EXPECT_EQ(result->program.inputs[0].shape, (Shape{-1, 3}));
  EXPECT_EQ(result->program.outputs[0].shape, (Shape{-1, 3}));
  EXPECT_TRUE(check_program(result->program).ok()) << check_program(result->program).message();
  // Rows that are together.
  const std::vector<float> outputs = run(*result, 1, {{0, 0, 0, 0, 0, 0}})[0];
  EXPECT_EQ(outputs, std::vector<float>(6, 0.5F));
}

// A size that a Reshape holds is the batch's where the file fixes that, or model.toml says so.
TEST_F(CompilerTest, ASetIsNoBatchUnlessItIsNamedSo) {
  TestModel model;
  model.input("x", {open("n"), fixed(4)}).integers("set", {1, -1, 4}).integers("back", {-1, 4}).output("y");
  model.node("Reshape", {"x", "set"}, "s").node("Softmax", {"s"}, "p", {{"axis", int64_t{1}}});
  model.node("Reshape", {"p", "back"}, "y");
  const auto set = compiled(model);
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_FALSE(set->program.batching);
  EXPECT_EQ(run(*set, 1, {std::vector<float>(8)})[0], std::vector<float>(8, 0.5F));
  options_.batch_dimensions = {"n"};
  const auto batch = compiled(model);
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_TRUE(batch->program.batching);
  EXPECT_EQ(run(*batch, 1, {std::vector<float>(8)})[0], std::vector<float>(8, 1));
}

// A size of one row alone: calls may have several.
TEST_F(CompilerTest, ProvesThatRowsAreIndependentThoughOneSizeIsAsked) {
  options_.batch_sizes = {1};
  TestModel model;
  model.input("x", {open("n"), fixed(3)}).output("y").node("Softmax", {"x"}, "y", {{"axis", int64_t{0}}});
  const auto result = compiled(model);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_FALSE(result->program.batching);
}

TEST_F(CompilerTest, AScalarBesideRowsNeedsNoSizes) {
  TestModel model;
  model.input("x", {open("n"), fixed(3)}).input("t", {}).output("y").node("Div", {"x", "t"}, "y");
  const auto result = compiled(model);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_FALSE(result->program.batching);
  EXPECT_EQ(run(*result, 1, {{2, 4, 6, 8, 10, 12}, {2}})[0], (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

// An unproved batch is one row where the file says so by a size that nothing else fits.
TEST_F(CompilerTest, ServesOneRowWhereOtherSizesDoNotCompile) {
  TestModel model;
  model.input("x", {open("n"), fixed(4)}).integers("flat", {4}).output("y").node("Reshape", {"x", "flat"}, "f");
  model.integers("row", {1, 4}).node("Reshape", {"f", "row"}, "y");
  const auto result = compiled(model);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_FALSE(result->program.batching);
  EXPECT_EQ(result->program.inputs[0].shape, (Shape{1, 4}));
  EXPECT_NE(result->program.notes[0].find("batch_dimension = \"n\""), std::string::npos) << result->program.notes[0];
}

TEST_F(CompilerTest, DoesNotBatchWhereABatchMakesRowsLonger) {
  TestModel model;
  model.input("x", {fixed(1), fixed(1), fixed(3), fixed(3)}).input("w", {fixed(1), fixed(1), fixed(2), fixed(2)});
  model.output("y").node("Conv", {"x", "w"}, "y");
  const auto result = compiled(model);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_FALSE(result->program.batching);
}

TEST_F(CompilerTest, DoesNotBatchAnOutputWithoutRows) {
  TestModel model;
  model.input("x", {fixed(2), fixed(3)}).output("y");
  model.node("ReduceSum", {"x"}, "y", {{"keepdims", int64_t{0}}});
  const auto result = compiled(model);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_FALSE(result->program.batching);
  EXPECT_EQ(result->program.outputs[0].shape, Shape{});
  EXPECT_EQ(run(*result, 0, {{1, 2, 3, 4, 5, 6}})[0], std::vector<float>{21});
}

TEST_F(CompilerTest, ChecksOtherSizesAgainstTheModelsOwn) {
  // Four rows that are summed in pairs: right for itself, wrong for any other size.
  TestModel model;
  model.input("x", {fixed(4), fixed(2)}).integers("flat", {2, 4}).integers("back", {4, 2}).output("y");
  model.node("Reshape", {"x", "flat"}, "a").node("Softmax", {"a"}, "b", {{"axis", int64_t{1}}});
  model.node("Reshape", {"b", "back"}, "y");
  options_.batch_sizes = {1, 2};
  const auto result = compiled(model);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_FALSE(result->program.batching);
  EXPECT_EQ(result->program.inputs[0].shape, (Shape{4, 2}));
  EXPECT_TRUE(check_program(result->program).ok()) << check_program(result->program).message();
}

TEST_F(CompilerTest, CompilesForEveryBucket) {
  TestModel model;
  model.input("x", {open("batch"), open("sequence"), fixed(4)}).weights("w", {4, 4}).output("y");
  model.node("MatMul", {"x", "w"}, "h").node("Softmax", {"h"}, "y", {{"axis", int64_t{1}}});
  options_.buckets = {{"sequence", {3, 5}}};
  const auto result = compiled(model);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const Program& program = result->program;
  ASSERT_EQ(program.buckets.size(), 2u);
  EXPECT_EQ(program.buckets[1].dimensions.at("sequence"), 5);
  EXPECT_EQ(program.plans.size(), 6u);
  EXPECT_EQ(program.inputs[0].shape, (Shape{-1, 4}));
  EXPECT_EQ(program.inputs[0].dimension_names[0], "sequence");
  EXPECT_EQ(program.outputs[0].dimension_names[0], "sequence");
  EXPECT_TRUE(check_program(program).ok()) << check_program(program).message();
}

TEST_F(CompilerTest, AsksForBucketsByName) {
  TestModel model;
  model.input("x", {open("batch"), open("sequence")}).output("y").node("Relu", {"x"}, "y");
  const auto result = compiled(model);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
  for (const char* part : {"sequence", "[buckets]", "model.toml", "model.onnx", "'x'"}) {
    EXPECT_NE(result.status().message().find(part), std::string::npos) << part;
  }
}

TEST_F(CompilerTest, AsksForAllSizesAtOnceInToml) {
  TestModel model;
  model.input("ids", {open("batch"), open("sequence")}).input("mask", {open("batch"), open("sequence")});
  model.input("x", {open("batch"), open("past + 1"), open("?"), open("")}).output("y").node("Relu", {"x"}, "y");
  const auto result = compiled(model);
  ASSERT_FALSE(result.ok());
  for (const char* part :
       {"'sequence' (dimension 1 of input 'ids', dimension 1 of input 'mask')", "'x_2' (dimension 2 of input 'x')",
        "buckets = {\"past + 1\" = [3], sequence = [128], x_2 = [224], x_3 = [224]}"}) {
    EXPECT_NE(result.status().message().find(part), std::string::npos) << part << "\n" << result.status().message();
  }
}

TEST_F(CompilerTest, KeepsDeclaredSizesInWhatItSuggests) {
  TestModel model;
  model.input("x", {open("batch"), open("a"), open("b")}).output("y").node("Relu", {"x"}, "y");
  options_.buckets = {{"a", {7, 9}}};
  const auto result = compiled(model);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("buckets = {a = [7, 9], b = [32, 64]}"), std::string::npos)
      << result.status().message();
}

TEST_F(CompilerTest, DimensionsWithoutANameAreNotAlike) {
  TestModel model;
  model.input("x", {open("batch"), open("?"), open("?")}).output("y").node("Relu", {"x"}, "y");
  options_.buckets = {{"x_1", {2}}, {"x_2", {3}}};
  const auto result = compiled(model);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->program.inputs[0].dimension_names, (std::vector<std::string>{"x_1", "x_2"}));
}

// y = a + b, the batch of each under a name of its own.
TestModel sum_of_two(const char* second) {
  TestModel model;
  model.input("a", {open("s10"), fixed(3)}).input("b", {open(second), fixed(3)}).output("y");
  return model.node("Add", {"a", "b"}, "y");
}

TEST_F(CompilerTest, FindsABatchUnderSeveralNames) {
  for (const auto& names : {std::vector<std::string>{}, {"s10", "s86"}}) {
    options_.batch_dimensions = names;
    const auto result = compiled(sum_of_two("s86"));
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_TRUE(result->program.batching);
    EXPECT_TRUE(result->program.notes.empty());
  }
  options_.batch_dimensions.clear();
  const auto unnamed = compiled(sum_of_two("?"));
  ASSERT_TRUE(unnamed.ok()) << unnamed.status().message();
  EXPECT_TRUE(unnamed->program.batching);
}

TEST_F(CompilerTest, TheBatchDimensionMustBeTheFirstOfEachInput) {
  options_.batch_dimensions = {"s10"};
  const auto result = compiled(sum_of_two("s86"));
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("'s10' of 'a', 's86' of 'b'"), std::string::npos)
      << result.status().message();
}

TEST_F(CompilerTest, AsksForSizesWhereDifferentNamesAreNoBatch) {
  // Each row of a with each of b.
  TestModel model;
  model.input("a", {open("m"), fixed(3)}).input("b", {open("n"), fixed(3)}).output("y");
  model.node("Transpose", {"b"}, "t").node("MatMul", {"a", "t"}, "y");
  const auto result = compiled(model);
  ASSERT_FALSE(result.ok());
  for (const char* part : {"are no batch (", "'m' (dimension 0 of input 'a'), 'n'", "buckets = {m = "}) {
    EXPECT_NE(result.status().message().find(part), std::string::npos) << part << "\n" << result.status().message();
  }
  options_.buckets = {{"m", {2}}, {"n", {5}}};
  const auto declared = compiled(model);
  ASSERT_TRUE(declared.ok()) << declared.status().message();
  ASSERT_EQ(declared->program.notes.size(), 1u);
  EXPECT_NE(declared->program.notes[0].find("'m', the first dimension of input 'a'"), std::string::npos)
      << declared->program.notes[0];
}

TEST_F(CompilerTest, SaysWhyFirstDimensionsAreNoBatch) {
  TestModel model;
  model.input("a", {fixed(2), fixed(3)}).input("b", {fixed(1), fixed(3)}).output("y").node("Add", {"a", "b"}, "y");
  const auto result = compiled(model);
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_EQ(result->program.notes.size(), 1u);
  EXPECT_EQ(result->program.notes[0],
            "compiled without batching: the inputs' first dimensions differ: that of 'a' is 2, that of 'b' is 1");
}

TEST_F(CompilerTest, FindsHowOutputsFollowTheInputs) {
  // Half as long; the square of the length; as long, where only one size is compiled.
  TestModel model;
  model.input("x", {open("batch"), fixed(1), open("length")}).weights("w", {1, 1, 2}).output("half").output("square");
  model.output("same").node("Conv", {"x", "w"}, "half", {{"strides", std::vector<int64_t>{2}}});
  model.node("Transpose", {"x"}, "t", {{"perm", std::vector<int64_t>{0, 2, 1}}}).node("MatMul", {"t", "x"}, "p");
  model.integers("rows", {0, -1}).node("Reshape", {"p", "rows"}, "square").node("Relu", {"x"}, "same");
  for (const auto& sizes : {std::vector<int64_t>{9}, {6, 9}}) {
    options_.buckets = {{"length", sizes}};
    const auto result = compiled(model);
    ASSERT_TRUE(result.ok()) << result.status().message();
    const Program& program = result->program;
    EXPECT_TRUE(check_program(program).ok()) << check_program(program).message();
    EXPECT_EQ(program.outputs[0].dimension_names, (std::vector<std::string>{"", "length / 2"}));
    EXPECT_EQ(program.outputs[1].dimension_names, std::vector<std::string>{"square_1"});
    EXPECT_EQ(program.outputs[2].dimension_names, (std::vector<std::string>{"", "length"}));
    EXPECT_EQ(program.buckets.back().dimensions,
              (std::map<std::string, int64_t>{{"length", 9}, {"length / 2", 4}, {"square_1", 81}}));
  }
}

TEST_F(CompilerTest, RefusesBucketsThatTheModelDoesNotHave) {
  options_.buckets = {{"sequnce", {8}}};
  const auto result = compiled(perceptron(open("batch")));
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("sequnce"), std::string::npos);
}

TEST_F(CompilerTest, RefusesBatchSizesThatMakeNoSense) {
  for (const std::vector<uint32_t>& sizes : {std::vector<uint32_t>{}, {0}, {2, 1}, {2, 2}, {1, 1u << 30}}) {
    options_.batch_sizes = sizes;
    EXPECT_FALSE(compiled(perceptron(open("batch"))).ok());
  }
}

TEST_F(CompilerTest, NamesFileAndNodeOfAnError) {
  TestModel model;
  model.input("x", {fixed(1), fixed(3)}).weights("w", {4, 4}).output("y").node("MatMul", {"x", "w"}, "y");
  const auto result = compiled(model);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("model.onnx"), std::string::npos);
  EXPECT_NE(result.status().message().find("node_y"), std::string::npos);
}

TEST_F(CompilerTest, LimitsTheWorkspace) {
  options_.workspace_bytes_max = 1;
  const auto result = compiled([] {
    TestModel model;
    model.input("x", {fixed(1), fixed(64)}).output("y");
    model.node("Sin", {"x"}, "a").node("Cos", {"a"}, "b").node("Softmax", {"b"}, "y");
    return model;
  }());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kResourceExhausted);
}

TEST_F(CompilerTest, PassesInputsAndConstantsThrough) {
  TestModel model;
  model.input("x", {open("batch"), fixed(2)}).output("y").output("z").node("Identity", {"x"}, "y");
  model.node("Identity", {"y"}, "z");
  const auto result = compiled(model);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const auto outputs = run(*result, 1, {{1, 2, 3, 4}});
  EXPECT_EQ(outputs[0], (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(outputs[1], outputs[0]);
}

// The CPU, whatever it has, with kernels for all products or for float32 alone.
class OtherCpu : public Device {
 public:
  explicit OtherCpu(bool narrow) : narrow_(narrow) {}
  Status supports_products(DataType type) const override {
    return narrow_ || type == DataType::kFloat32 ? Status() : Status::unimplemented("it only has float32");
  }
  std::string kind() const override { return cpu_->kind(); }
  std::string fingerprint() const override { return cpu_->fingerprint(); }
  bool runs(const std::string& fingerprint) const override { return cpu_->runs(fingerprint); }
  std::unique_ptr<Device> another() const override { return std::make_unique<OtherCpu>(narrow_); }
  std::vector<std::string> layouts(std::span<const Graph> graphs) const override { return cpu_->layouts(graphs); }
  Result<LoweredProgram> lower(std::span<const Graph> graphs, const std::string& layout) override {
    return cpu_->lower(graphs, layout);
  }
  Status allocate(const DeviceMemory& memory) override { return cpu_->allocate(memory); }
  Result<std::unique_ptr<Executable>> preload(std::span<const Plan> plans,
                                              std::shared_ptr<WeightsSource> weights) override {
    return cpu_->preload(plans, std::move(weights));
  }
  void copy_to_io(uint64_t offset, std::span<const std::byte> from) override { cpu_->copy_to_io(offset, from); }
  void copy_from_io(uint64_t offset, std::span<std::byte> to) override { cpu_->copy_from_io(offset, to); }

 private:
  const bool narrow_;
  const std::unique_ptr<Device> cpu_ = make_cpu_device({.threads = 1, .lock_memory = false});
};

// What of a program's products is narrow.
size_t narrow_products(const CompiledProgram& compiled, DataType type) {
  const Plan& plan = compiled.program.plans.front();
  return static_cast<size_t>(std::ranges::count_if(plan.operators, [&](const Operator& step) {
    return step.kind == OperatorKind::kMatMul && plan.tensors[step.inputs[0]].type == type;
  }));
}

// With kernels for it, emulated ones, or none and so in float32 between conversions.
TEST_F(CompilerTest, ComputesInBfloat16OnRequestAndSaysWhatThatCosts) {
  EXPECT_FALSE(compiled(perceptron(open("batch")))->narrowing_error.has_value());
  options_.precision = Precision::kBfloat16;
  OtherCpu cpu(true);
  const auto result = compile(path(), options_, cpu);
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_TRUE(result->narrowing_error.has_value());
  EXPECT_LT(*result->narrowing_error, 0.02);
  EXPECT_TRUE(result->program.notes.empty());
  EXPECT_EQ(result->program.inputs[0].type, DataType::kFloat32);
  EXPECT_EQ(result->program.outputs[0].type, DataType::kFloat32);
  EXPECT_EQ(run(*result, 0, {{1, 1, 1}})[0], (std::vector<float>{0, 13}));  // small whole numbers are exact
}

TEST_F(CompilerTest, ComputesInFloat32WhereBfloat16IsSlowAndSaysWhy) {
  write(perceptron(open("batch")));
  options_.precision = Precision::kBfloat16;
  OtherCpu cpu(false);
  const auto result = compile(path(), options_, cpu);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_FALSE(result->narrowing_error.has_value());
  EXPECT_EQ(result->program.notes,
            std::vector<std::string>{"precision = \"bfloat16\" is computed in float32: it only has float32"});
  EXPECT_EQ(narrow_products(*result, DataType::kBfloat16), 0u);
  EXPECT_EQ(run(*result, 0, {{1, 1, 1}})[0], (std::vector<float>{0, 13}));
}

// y = dequantized(quantized(x) * w), codes and weights as large as they get.
TestModel quantized_perceptron() {
  TestModel model(13);
  model.input("x", {open("batch"), fixed(64)}).output("y");
  model.constant("codes", make_constant(DataType::kInt8, {64, 2}, std::vector<std::byte>(128, std::byte{127})));
  model.scalar("one", 1).constant("unsigned", make_constant(DataType::kUint8, {}, {std::byte{0}}));
  model.constant("signed", make_constant(DataType::kInt8, {}, {std::byte{0}})).scalar("step", 16384);
  model.node("QuantizeLinear", {"x", "one", "unsigned"}, "q").node("DequantizeLinear", {"q", "one", "unsigned"}, "a");
  model.node("DequantizeLinear", {"codes", "one", "signed"}, "w").node("MatMul", {"a", "w"}, "b");
  model.node("QuantizeLinear", {"b", "step", "unsigned"}, "c").node("DequantizeLinear", {"c", "step", "unsigned"}, "y");
  return model;
}

// A sum that an int16 does not hold, whatever multiplies it.
TEST_F(CompilerTest, QuantizedModelsGiveTheSameOnEveryDevice) {
  write(quantized_perceptron());
  const std::vector<float> x(64, 255), expected(2, 127 * 16384);  // 64 * 255 * 127 = 126.5 * 16384
  for (const bool narrow : {true, false}) {
    OtherCpu cpu(narrow);
    const auto result = compile(path(), options_, cpu);
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(run(*result, 0, {x})[0], expected) << (narrow ? "narrow" : "wide");
    EXPECT_EQ(result->narrowing_error.has_value(), narrow);
    EXPECT_EQ(result->program.notes.size(), narrow ? 0u : 1u);
  }
}

TEST_F(CompilerTest, SaysOnlyOfQuantizedModelsThatTheyAreNotInIntegers) {
  write(perceptron(open("batch")));
  OtherCpu cpu(false);
  EXPECT_TRUE(compile(path(), options_, cpu)->program.notes.empty());
}

TEST_F(CompilerTest, ProgramsOfOtherDevicesAreNotRun) {
  auto result = compiled(perceptron(open("batch")));
  ASSERT_TRUE(result.ok());
  const auto runs = [&] {
    const auto fresh = device();
    return ProgramRunner::create(*fresh, result->program, result->weights).status();
  };
  EXPECT_TRUE(runs().ok());
  result->program.device_fingerprint = make_cpu_device({.threads = 3})->fingerprint();
  EXPECT_TRUE(runs().ok()) << "another number of threads computes the same";
  result->program.device_fingerprint = "cpu oneDNN 2.6.3 sse41 lowering=1 threads=1";
  EXPECT_EQ(runs().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(runs().message().find("sse41"), std::string::npos);
}

TEST_F(CompilerTest, KeysDependOnModelAndOptions) {
  const auto fresh = device();
  write(perceptron(open("batch")));
  const std::string key = compile_key(path(), options_, *fresh).value();
  EXPECT_EQ(compile_key(path(), options_, *fresh).value(), key);
  CompileOptions other = options_;
  other.buckets["sequence"] = {1};
  EXPECT_NE(compile_key(path(), other, *fresh).value(), key);
  write(perceptron(fixed(1)));
  EXPECT_NE(compile_key(path(), options_, *fresh).value(), key);
  EXPECT_EQ(compile_key(folder_ / "missing.onnx", options_, *fresh).status().code(), StatusCode::kNotFound);
}

// Fused and folded, the result is what the operators mean one by one.
TEST_F(CompilerTest, ComputesWhatTheModelSays) {
  TestModel model(13);
  model.input("x", {open("batch"), fixed(4)}).output("y");
  model.constant("w", make_constant({4, 2}, std::vector<float>{1, 0, 0, 1, 1, 0, 0, 1}));
  model.constant("scale", make_constant({2}, std::vector<float>{2, 3}));
  model.constant("shift", make_constant({1, 2}, std::vector<float>{1, -1}));
  model.scalar("half", 0.5f).scalar("root", 1.4142135f).scalar("one", 1);
  model.node("MatMul", {"x", "w"}, "a").node("Mul", {"a", "scale"}, "b").node("Add", {"b", "shift"}, "c");
  model.node("Div", {"c", "root"}, "d").node("Erf", {"d"}, "e").node("Add", {"e", "one"}, "f");
  model.node("Mul", {"c", "f"}, "g").node("Mul", {"g", "half"}, "y");
  const auto result = compiled(model);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const auto y = run(*result, 0, {{1, 2, -3, 4}})[0];
  const double expected[] = {(1.0 - 3) * 2 + 1, (2.0 + 4) * 3 - 1};
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(y[i], expected[i] * 0.5 * (1 + std::erf(expected[i] / std::sqrt(2.0))), 1e-4);
  }
}

}  // namespace
}  // namespace foliot
