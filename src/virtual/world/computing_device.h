// ComputingDevice: a SimulatedDevice whose outputs say what made them: the content of the
// model that its pages held, the inputs, and the action. So a front end notices an answer
// of another version, of another request or of another action.
#ifndef FOLIOT_VIRTUAL_WORLD_COMPUTING_DEVICE_H_
#define FOLIOT_VIRTUAL_WORLD_COMPUTING_DEVICE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "foundation/core/payload.h"
#include "virtual/world/simulated_device.h"
#include "virtual/world/simulated_row.h"

namespace foliot {

uint64_t content_hash(const ModelInfo& model);
// This version of the model, whose inputs and outputs are the tensors of a SimulatedRow: with elements all of them,
// else the first. As with real models, two with one label (ModelInfo::version) may differ: only the content says
// which it is.
std::shared_ptr<const ModelInfo> simulated_version(const ModelInfo& model, uint64_t version, ModelId id,
                                                   bool elements = false);
// REQUIRES: it is a simulated version.
uint64_t version_of(const ModelInfo& model);

class ComputingDevice : public SimulatedDevice {
 public:
  // `payloads` outlives it.
  ComputingDevice(const NoiseOptions& noise, uint64_t seed, const SimulatedLanes& lanes, PayloadStore& payloads)
      : SimulatedDevice(noise, seed, lanes), payloads_(payloads) {}

  // The models that its pages hold, by content.
  std::multiset<uint64_t> held() const;

  Result<WorkerModel> add(const EngineModel& model) override;
  void remove(ModelId model) override;
  Status load(ModelId model, std::span<const PageIndex> pages) override;
  void unload(ModelId model) override;
  void input(const InferWork& work) override;
  void output(const InferWork& work) override;
  Status run(const InferWork& work) override;

 private:
  PayloadStore& payloads_;
  std::map<ModelId, uint64_t> contents_;
  std::map<ModelId, uint32_t> tensors_;  // of its inputs, and of its outputs
  std::map<ModelId, uint64_t> held_;
  std::map<ActionId, uint64_t> executed_;  // of what content, until OUTPUT
  // By the place of the batch in the io cache: of its rows, until another batch has it.
  std::map<uint64_t, std::vector<SimulatedRow>> inputs_;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_WORLD_COMPUTING_DEVICE_H_
