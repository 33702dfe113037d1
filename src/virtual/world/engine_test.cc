// The simulator's engines keep the contract of engines.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "engine/worker/conformance/engine_conformance.h"
#include "virtual/world/computing_device.h"
#include "virtual/world/simulated_device.h"

namespace foliot {
namespace {

EngineModel engine_model(ModelId id, uint32_t variant) {
  ModelInfo info;
  info.name = "m";
  info.buckets.resize(1);
  info.only() = {.batch_sizes = {1, 4},
                 .pages = 2 + variant,
                 .seed_exec = {{Duration::milliseconds(1), Duration::milliseconds(2)}}};
  return {simulated_version(info, variant + 1, id)};
}

class SimulatedSubject : public EngineSubject {
 public:
  Engine& engine() override { return device_; }
  EngineModel model(ModelId id, uint32_t variant) override { return engine_model(id, variant); }
  bool compute(const EngineModel&, const Action&, std::span<const std::byte>, std::span<std::byte>) override {
    return false;
  }
  bool is_threaded() const override { return false; }

 private:
  SimulatedDevice device_{{}, 1};
};

class ComputingSubject : public EngineSubject {
 public:
  explicit ComputingSubject(PayloadStore& payloads) : device_({}, 1, {}, payloads) {}
  Engine& engine() override { return device_; }
  EngineModel model(ModelId id, uint32_t variant) override { return engine_model(id, variant); }
  bool compute(const EngineModel& model, const Action& action, std::span<const std::byte> input,
               std::span<std::byte> output) override {
    SimulatedRow words;
    std::ranges::copy(input, words.bytes(0).begin());
    const SimulatedRow expected = simulated_output(content_hash(*model.info), words.hash(1), action.id.value());
    std::ranges::copy(expected.bytes(0), output.begin());
    return true;
  }
  bool is_threaded() const override { return false; }

 private:
  ComputingDevice device_;
};

INSTANTIATE_TEST_SUITE_P(Simulated, EngineConformance,
                         testing::Values(EngineCase{"Simulated",
                                                    [](PayloadStore&) { return std::make_unique<SimulatedSubject>(); }},
                                         EngineCase{"Computing", [](PayloadStore& payloads) {
                                                      return std::make_unique<ComputingSubject>(payloads);
                                                    }}));

}  // namespace
}  // namespace foliot
