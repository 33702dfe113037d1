// ComputingDevice: a SimulatedDevice whose outputs say what made them: the content of the
// model that its pages held, the inputs, and the action. So a front end notices an answer
// of another version, of another request or of another action.
#ifndef FOLIOT_SIM_COMPUTING_DEVICE_H_
#define FOLIOT_SIM_COMPUTING_DEVICE_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/payload.h"
#include "sim/simulated_device.h"

namespace foliot {

// What a row's input and output hold. Models of a simulated cluster have one of each, and
// the output of one can be the input of another.
using SimulatedInput = std::array<uint64_t, 3>;
struct SimulatedOutput {
  uint64_t content = 0;  // content_hash() of the model
  uint64_t input = 0;    // input_hash()
  uint64_t action = 0;

  bool operator==(const SimulatedOutput&) const = default;
};
static_assert(sizeof(SimulatedInput) == sizeof(SimulatedOutput));

uint64_t input_hash(const SimulatedInput& input);

uint64_t content_hash(const ModelInfo& model);
// This version of the model, with inputs and outputs as above. As with real models, two with
// one label (ModelInfo::version) may differ: only the content says which it is.
std::shared_ptr<const ModelInfo> simulated_version(const ModelInfo& model, uint64_t version, ModelId id);
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
  std::map<ModelId, uint64_t> held_;
  std::map<ActionId, uint64_t> executed_;  // of what content, until OUTPUT
  // By the place of the batch in the io cache: of its rows, until another batch has it.
  std::map<uint64_t, std::vector<SimulatedInput>> inputs_;
};

}  // namespace foliot

#endif  // FOLIOT_SIM_COMPUTING_DEVICE_H_
