// The engine that other tests use keeps the contract of engines.
#include "engine/worker/conformance/fake_engine.h"

#include <gtest/gtest.h>

#include <memory>

#include "engine/worker/conformance/engine_conformance.h"

namespace foliot {
namespace {

class FakeSubject : public EngineSubject {
 public:
  explicit FakeSubject(PayloadStore& payloads) : engine_(payloads, kIoCacheBytes, kModelsMax) {}
  Engine& engine() override { return engine_; }
  EngineModel model(ModelId id, uint32_t variant) override {
    auto info = std::make_shared<ModelInfo>();
    info->id = id;
    info->content = std::to_string(variant);
    info->only().batch_sizes = {1, 4};
    info->inputs = {{"x", DataType::kUint8, {100}, {""}}};
    info->outputs = {{"y", DataType::kUint8, {150}, {""}}};
    info->buckets.resize(1);
    info->only().pages = 3 + variant;
    return {info};
  }
  bool compute(const EngineModel& model, const Action& /*action*/, std::span<const std::byte> input,
               std::span<std::byte> output) override {
    FakeEngine::compute(*model.info, input, output);
    return true;
  }

 private:
  FakeEngine engine_;
};

INSTANTIATE_TEST_SUITE_P(Fake, EngineConformance,
                         testing::Values(EngineCase{
                             "Fake", [](PayloadStore& payloads) { return std::make_unique<FakeSubject>(payloads); }}));

}  // namespace
}  // namespace foliot
