#include "models/steps/step_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/compiler/compiler.h"
#include "engine/compiler/program_runner.h"
#include "engine/device/cpu/cpu_device.h"
#include "models/steps/pipeline_steps.h"

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Options = std::map<std::string, StepOption>;

std::string error_of(const std::string& kind, const Options& options,
                     const std::optional<StepTensor>& source = std::nullopt) {
  return make_step_model(kind, options, source).status().message();
}

// Compiles a step and runs it on one row.
class StepModelTest : public testing::Test {
 protected:
  StepModelTest() {
    std::string name = testing::TempDir() + "foliot_steps_XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~StepModelTest() override { std::filesystem::remove_all(folder_); }

  template <typename To, typename From>
  std::vector<To> run(const StepModel& step, const std::vector<From>& row, size_t output = 0) const {
    const std::filesystem::path file = folder_ / "model.onnx";
    std::ofstream(file, std::ios::binary) << step.onnx;
    CompileOptions options;
    options.batch_sizes = {1, 2};
    options.buckets = step.buckets;
    options.profile_runs = 1;
    const auto device = make_cpu_device({.threads = 1, .lock_memory = false});
    const auto compiled = compile(file, options, *device);
    if (!compiled.ok()) {
      ADD_FAILURE() << compiled.status().message();
      return {};
    }
    EXPECT_TRUE(compiled->program.batching);
    const auto fresh = make_cpu_device({.threads = 1, .lock_memory = false});
    const auto runner = ProgramRunner::create(*fresh, compiled->program, compiled->weights);
    EXPECT_TRUE(runner.ok()) << runner.status().message();
    const Plan& plan = compiled->program.plans[0];
    std::vector<std::byte> in(plan.input_bytes), out(plan.output_bytes);
    EXPECT_LE(row.size() * sizeof(From), plan.tensors[plan.inputs[0]].bytes);
    std::memcpy(in.data() + plan.tensors[plan.inputs[0]].offset, row.data(), row.size() * sizeof(From));
    EXPECT_TRUE((*runner)->run(0, in, out).ok());
    const Tensor& made = plan.tensors[plan.outputs.at(output)];
    Shape shape{1};
    shape.insert(shape.end(), step.outputs[output].shape.begin(), step.outputs[output].shape.end());
    EXPECT_EQ(made.shape, shape);
    EXPECT_EQ(made.type, step.outputs[output].type);
    std::vector<To> values(element_count(made.shape));
    std::memcpy(values.data(), out.data() + made.offset, values.size() * sizeof(To));
    return values;
  }

  std::filesystem::path folder_;
};

std::vector<double> list(std::initializer_list<double> values) { return values; }

TEST_F(StepModelTest, Decodes) {
  const auto step = make_step_model(
      "decode",
      {{"width", int64_t{3}}, {"height", int64_t{2}}, {"fit", std::string("crop")}, {"bytes", list({1024, 2048})}},
      std::nullopt);
  ASSERT_TRUE(step.ok()) << step.status().message();
  EXPECT_THAT(step->buckets.at("bytes"), ElementsAre(1024, 2048));
  EXPECT_EQ(run<uint8_t>(*step, std::vector<uint8_t>{1, 2, 3}), std::vector<uint8_t>(18)) << "no JPEG";
}

TEST_F(StepModelTest, Normalises) {
  const Options options{{"mean", list({0.5, 0, 0})}, {"std", list({0.5, 1, 2})}};
  const auto step = make_step_model("normalise", options, StepTensor{"image", DataType::kUint8, {1, 2, 3}});
  ASSERT_TRUE(step.ok()) << step.status().message();
  const auto values = run<float>(*step, std::vector<uint8_t>{255, 255, 255, 0, 51, 0});
  const std::vector<float> expected{1, -1, 1, 0.2F, 0.5F, 0};
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-6) << i;
}

TEST_F(StepModelTest, ResizesByTheMeanOfWhatItJoins) {
  const auto step = make_step_model(
      "resize",
      {{"width", int64_t{1}}, {"height", int64_t{1}}, {"shape", list({2, 2, 2})}, {"type", std::string("uint8")}},
      std::nullopt);
  ASSERT_TRUE(step.ok()) << step.status().message();
  EXPECT_THAT(run<uint8_t>(*step, std::vector<uint8_t>{10, 0, 20, 0, 30, 0, 41, 255}), ElementsAre(25, 64));
}

TEST_F(StepModelTest, CropsTheMiddle) {
  const Options middle{{"width", int64_t{2}}, {"height", int64_t{1}}, {"shape", list({3, 4, 1})}};
  const auto step = make_step_model("crop", middle, std::nullopt);
  ASSERT_TRUE(step.ok()) << step.status().message();
  const std::vector<float> image{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  EXPECT_THAT(run<float>(*step, image), ElementsAre(5, 6));
  Options corner = middle;
  corner["x"] = int64_t{2};
  corner["y"] = int64_t{0};
  EXPECT_THAT(run<float>(*make_step_model("crop", corner, std::nullopt), image), ElementsAre(2, 3));
}

TEST_F(StepModelTest, ComparesWithALimit) {
  const auto step = make_step_model("threshold", {{"limit", 0.5}, {"shape", list({3})}}, std::nullopt);
  ASSERT_TRUE(step.ok()) << step.status().message();
  EXPECT_THAT(run<uint8_t>(*step, std::vector<float>{0.4F, 0.5F, 0.6F}), ElementsAre(0, 0, 1));
}

TEST_F(StepModelTest, FindsTheLargest) {
  const auto step = make_step_model("top_k", {{"k", int64_t{2}}, {"shape", list({4})}}, std::nullopt);
  ASSERT_TRUE(step.ok()) << step.status().message();
  const std::vector<float> scores{0.1F, 0.7F, 0.2F, 0.7F};
  EXPECT_THAT(run<float>(*step, scores), ElementsAre(0.7F, 0.7F));
  EXPECT_THAT(run<int64_t>(*step, scores, 1), ElementsAre(1, 3));
}

TEST(StepOptionsTest, ErrorsNameWhatIsWrong) {
  const int64_t ten = 10;
  EXPECT_EQ(error_of("tokenise", {}), "step 'tokenise': vocabulary is missing: write vocabulary = \"vocab.txt\"");
  EXPECT_THAT(error_of("tokenise", {{"vocabulary", std::string("../vocab.txt")}}),
              HasSubstr("vocabulary '../vocab.txt': must be a file in the pipeline's folder"));
  EXPECT_THAT(error_of("tokenise", {{"vocabulary", std::string("no.txt")}}), HasSubstr("is empty or cannot be read"));
  EXPECT_THAT(error_of("tokenise", {{"vocabulary", std::string("no.txt")}, {"length", int64_t{1}}}),
              HasSubstr("length 1: must be 2 to 8192"));
  EXPECT_THAT(error_of("paint", {}), HasSubstr("there is no step 'paint'; the steps are crop, decode, normalise"));
  EXPECT_EQ(error_of("decode", {{"width", int64_t{0}}, {"height", ten}}), "step 'decode': width 0: must be 1 to 4096");
  EXPECT_EQ(error_of("decode", {{"width", ten}}), "step 'decode': height is missing: write height = 1 to 4096");
  EXPECT_EQ(error_of("decode", {{"width", 1.5}, {"height", ten}}),
            "step 'decode': width must be a whole number, 1 to 4096");
  EXPECT_EQ(error_of("decode", {{"width", ten}, {"height", ten}, {"fit", std::string("fill")}}),
            "step 'decode': fit 'fill': must be one of stretch, crop, pad");
  EXPECT_THAT(error_of("decode", {{"width", ten}, {"height", ten}, {"bytes", list({2048, 1024})}}),
              HasSubstr("bytes [2048, 1024]: must ascend"));
  EXPECT_THAT(error_of("decode", {{"width", ten}, {"height", ten}, {"depth", ten}}),
              HasSubstr("step 'decode': there is no option 'depth'; the options are bytes, fit, height"));
  EXPECT_THAT(error_of("top_k", {{"k", ten}}), HasSubstr("step 'top_k': shape is missing"));
  EXPECT_EQ(error_of("top_k", {{"k", ten}, {"shape", list({5})}}), "step 'top_k': k 10: must be 1 to 5");
  EXPECT_THAT(error_of("crop", {{"width", ten}, {"height", ten}}, StepTensor{"x", DataType::kFloat32, {1000}}),
              HasSubstr("its input 'image' has 1 dimensions; it takes [height, width, channels]"));
  EXPECT_THAT(error_of("threshold", {{"limit", 0.5}}, StepTensor{"x", DataType::kInt64, {1000}}),
              HasSubstr("its input 'values' is INT64; it takes float32 and uint8"));
}

TEST(PipelineStepsTest, TakeWhatTheStepsBeforeThemMake) {
  PipelineSpec spec{.name = "photos", .file = "photos/pipeline.toml"};
  StageSpec decode{.name = "decode", .step = "decode", .options = {{"width", int64_t{6}}, {"height", int64_t{4}}}};
  StageSpec normalise{.name = "norm", .step = "normalise", .options = {}};
  normalise.inputs["image"] = {{.stage = "decode", .tensor = "image"}};
  StageSpec model{.name = "cheap", .model = "mobilenet"};
  StageSpec wrong{.name = "best", .step = "top_k", .options = {}, .line = 7};
  spec.stages = {decode, normalise, model, wrong};
  const std::vector<PipelineStep> steps = steps_of(spec);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].name, "photos.decode");
  ASSERT_TRUE(steps[1].model.ok()) << steps[1].model.status().message();
  EXPECT_EQ(steps[1].model->outputs[0].shape, (Shape{3, 4, 6}));
  EXPECT_THAT(steps[2].model.status().message(),
              HasSubstr("photos/pipeline.toml:7: stage 'best': step 'top_k': shape"));
}

TEST(PipelineStepsTest, OfWhatIsTakenElementByElementTheyTakeOne) {
  PipelineSpec spec{.name = "street", .file = "street/pipeline.toml"};
  StageSpec decode{.name = "decode", .step = "decode", .options = {{"width", int64_t{6}}, {"height", int64_t{4}}}};
  StageSpec best{.name = "best", .step = "top_k", .options = {{"k", int64_t{2}}}};
  best.inputs["scores"] = {{.stage = "decode", .tensor = "image", .each = true}};
  best.for_each = {{"detect", "count"}, 4};
  StageSpec again{.name = "again", .step = "top_k", .options = {{"k", int64_t{1}}}};
  again.inputs["scores"] = {{.stage = "best", .tensor = "values"}};
  spec.stages = {decode, best, again};
  const std::vector<PipelineStep> steps = steps_of(spec);
  ASSERT_TRUE(steps[1].model.ok()) << steps[1].model.status().message();
  EXPECT_EQ(steps[1].model->outputs[0].shape, (Shape{6, 2})) << "of [4, 6, 3] one";
  ASSERT_TRUE(steps[2].model.ok()) << steps[2].model.status().message();
  EXPECT_EQ(steps[2].model->outputs[0].shape, (Shape{4, 6, 1})) << "all of them";
}

}  // namespace
}  // namespace foliot
