#include "worker/device_engine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>

#include "device/conformance/bump_planner.h"
#include "device/conformance/case_graph_builder.h"
#include "device/conformance/session.h"
#include "device/cpu/cpu_device.h"
#include "worker/conformance/engine_conformance.h"

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

class NativeSubject : public EngineSubject {
 public:
  explicit NativeSubject(PayloadStore& payloads)
      : device_(make_cpu_device({.lock_memory = false})), engine_(*device_, payloads, kModelsMax) {
    const Status allocated = device_->allocate({.page_bytes = kPageBytes,
                                                .page_count = kPages,
                                                .io_cache_bytes = kIoCacheBytes,
                                                .workspace_bytes = uint64_t{1} << 20});
    EXPECT_TRUE(allocated.ok()) << allocated.message();
  }
  Engine& engine() override { return engine_; }

  EngineModel model(ModelId id, uint32_t variant) override {
    const Graph one = adding(1, variant, nullptr);
    const Graph four = adding(4, variant, &one);
    PlannedProgram planned = lower_and_plan(*device_, std::vector<Graph>{one, four}).value();
    auto program = std::make_shared<Program>();
    program->batch_sizes = {1, 4};
    program->plans = std::move(planned.plans);
    program->weights_bytes = planned.weights.size();
    auto info = std::make_shared<ModelInfo>();
    info->id = id;
    info->content = std::to_string(variant);
    info->only().batch_sizes = program->batch_sizes;
    info->inputs = info->outputs = {{"x", DataType::kFloat32, {kNumbers}, {""}}};
    info->buckets.resize(1);
    info->only().pages = program->pages(kPageBytes);
    return {info, {program, memory_weights(std::move(planned.weights))}};
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
  std::unique_ptr<CpuDevice> device_;
  DeviceEngine engine_;
};

INSTANTIATE_TEST_SUITE_P(Native, EngineConformance,
                         testing::Values(EngineCase{"Native", [](PayloadStore& payloads) {
                                                      return std::make_unique<NativeSubject>(payloads);
                                                    }}));

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
