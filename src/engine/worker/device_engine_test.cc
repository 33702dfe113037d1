#include "engine/worker/device_engine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "engine/device/conformance/bump_planner.h"
#include "engine/device/conformance/case_graph_builder.h"
#include "engine/device/conformance/session.h"
#include "engine/device/conformance/tiny_jpeg.h"
#include "engine/device/cpu/cpu_device.h"
#include "engine/worker/conformance/engine_conformance.h"

namespace foliot {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr int64_t kNumbers = 8;  // in a row

double constant_of(uint32_t variant) { return 1000.0 * (variant + 1); }

// y = x + a constant, which is what lies in the pages. `like`: with its constant.
Graph adding(uint32_t batch_size, uint32_t variant, const Graph* like) {
  CaseGraphBuilder builder(batch_size);
  const Shape shape{batch_size, kNumbers};
  const ValueIndex x = builder.input(shape);
  const Array constant{
      .type = DataType::kFloat32, .shape = {kNumbers}, .values = std::vector<double>(kNumbers, constant_of(variant))};
  const ValueIndex c = like == nullptr ? builder.constant(constant) : builder.constant(like->values[1]);
  builder.output(builder.node(OperatorKind::kBinary, {x, c}, shape, {{"function", Function::kAdd}}));
  return builder.graph();
}

constexpr uint32_t kJpegBytes = 512;  // of a row

class NativeSubject : public EngineSubject {
 public:
  explicit NativeSubject(PayloadStore& payloads)
      : device_(make_cpu_device({.lock_memory = false})), engine_(*device_, payloads, kModelsMax) {
    const Status allocated = device_->allocate({.page_bytes = kPageBytes,
                                                .page_count = kPages,
                                                .io_cache_bytes = kIoCacheBytes,
                                                .workspace_bytes = uint64_t{8} << 20});
    EXPECT_TRUE(allocated.ok()) << allocated.message();
  }
  Engine& engine() override { return engine_; }

  EngineModel model(ModelId id, uint32_t variant) override {
    const Graph one = adding(1, variant, nullptr);
    const TensorSpec row{"x", DataType::kFloat32, {kNumbers}, {""}};
    return model_of(id, std::to_string(variant), {one, adding(4, variant, &one)}, row, row);
  }
  EngineModel decoder(ModelId id) {
    return model_of(id, "decoder", {decoding_graph(1, kJpegBytes), decoding_graph(4, kJpegBytes)},
                    {"bytes", DataType::kUint8, {kJpegBytes}, {""}},
                    {"image", DataType::kUint8, {4, 4, 3}, {"", "", ""}});
  }

  bool compute(const EngineModel& model, const Action& /*action*/, std::span<const std::byte> input,
               std::span<std::byte> output) override {
    const auto constant = static_cast<float>(constant_of(static_cast<uint32_t>(std::stoul(model.info->content))));
    for (size_t at = 0; at < input.size(); at += sizeof(float)) {
      float number = 0;
      std::memcpy(&number, &input[at], sizeof(number));
      number += constant;
      std::memcpy(&output[at], &number, sizeof(number));
    }
    return true;
  }

 private:
  // Of batch sizes 1 and 4.
  EngineModel model_of(ModelId id, const std::string& content, const std::vector<Graph>& graphs,
                       const TensorSpec& input, const TensorSpec& output) {
    PlannedProgram planned = lower_and_plan(*device_, graphs).value();
    auto program = std::make_shared<Program>();
    program->batch_sizes = {1, 4};
    program->plans = std::move(planned.plans);
    program->weights_bytes = planned.weights.size();
    auto info = std::make_shared<ModelInfo>();
    info->id = id;
    info->content = content;
    info->only().batch_sizes = program->batch_sizes;
    info->inputs = {input};
    info->outputs = {output};
    info->buckets.resize(1);
    info->only().pages = program->pages(kPageBytes);
    return {info, {program, memory_weights(std::move(planned.weights))}};
  }

  std::unique_ptr<CpuDevice> device_;
  DeviceEngine engine_;
};

INSTANTIATE_TEST_SUITE_P(Native, EngineConformance,
                         testing::Values(EngineCase{"Native", [](PayloadStore& payloads) {
                                                      return std::make_unique<NativeSubject>(payloads);
                                                    }}));

TEST(DeviceEngine, KnowsHowManyOperatorsEachPlanHas) {
  PayloadRows payloads;
  NativeSubject subject(payloads);
  const EngineModel model = subject.model(ModelId(0), 0);
  std::vector<uint32_t> counts;
  for (const Plan& plan : model.package.program->plans) counts.push_back(static_cast<uint32_t>(plan.operators.size()));
  EXPECT_EQ(subject.engine().add(model)->operator_counts, counts);
}

// Two rows in a batch of four: the unused ones are refused as well, and belong to no request.
TEST(DeviceEngine, RowsThatAnOperatorRefusesAreNotedAndNotFinished) {
  PayloadRows payloads;
  NativeSubject subject(payloads);
  Engine& engine = subject.engine();
  const Result<WorkerModel> model = engine.add(subject.decoder(ModelId(0)));
  ASSERT_TRUE(model.ok()) << model.status().message();
  ASSERT_TRUE(engine.prepare(ModelId(0), 1).ok());
  std::vector<PageIndex> pages(model->pages);
  std::iota(pages.begin(), pages.end(), PageIndex(0));
  ASSERT_TRUE(engine.load(ModelId(0), pages).ok());
  std::vector<std::byte> jpeg(kJpegBytes);
  std::memcpy(jpeg.data(), kTinyJpeg.data(), kTinyJpeg.size());
  std::vector<std::byte> damaged = jpeg;
  damaged[0] = std::byte{1};
  RowSet failed;
  InferWork work{.action = {.type = ActionType::kInfer, .model = ModelId(0), .batch_size = 4},
                 .output_offset = 4 * kJpegBytes,
                 .failed_rows = &failed};
  const PayloadHandle first = payloads.add(damaged, 48);
  const PayloadHandle second = payloads.add(jpeg, 48);
  work.action.rows.add({RequestId(1), first});
  work.action.rows.add({RequestId(2), second});
  engine.input(work);
  ASSERT_TRUE(engine.run(work).ok());
  EXPECT_EQ(failed, RowSet(0b01));
  engine.output(work);
  EXPECT_TRUE(payloads.finished(first).empty());
  EXPECT_FALSE(payloads.finished(second).empty());
}

TEST(DeviceEngine, ADamagedProgramIsRefusedAndItsIdCanBeUsed) {
  PayloadRows payloads;
  NativeSubject subject(payloads);
  EngineModel damaged = subject.model(ModelId(0), 0);
  auto program = std::make_shared<Program>(*damaged.package.program);
  program->plans[0].workspace_bytes = uint64_t{1} << 40;
  damaged.package.program = program;
  EXPECT_EQ(subject.engine().add(damaged).status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(subject.engine().add(subject.model(ModelId(0), 0)).ok());
}

}  // namespace
}  // namespace foliot
