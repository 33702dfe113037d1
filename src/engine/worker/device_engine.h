// DeviceEngine: the native engine, which runs compiled programs on a Device.
//
// Threading: as Engine.
#ifndef FOLIOT_ENGINE_WORKER_DEVICE_ENGINE_H_
#define FOLIOT_ENGINE_WORKER_DEVICE_ENGINE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/device/device.h"
#include "engine/worker/engine.h"
#include "foundation/core/payload.h"

namespace foliot {

class DeviceEngine : public Engine {
 public:
  // All references outlive the engine. ModelId values are below `models_max`.
  DeviceEngine(Device& device, PayloadStore& payloads, uint32_t models_max);

  uint32_t lanes() const override { return device_.lanes(); }
  // Of EngineModel::package. Errors: Device::preload()'s.
  Result<WorkerModel> add(const EngineModel& model) override;
  // Errors: Executable::prepare()'s.
  Status prepare(ModelId model, size_t batch_index) override;
  void remove(ModelId model) override;
  Status load(ModelId model, std::span<const PageIndex> pages) override;
  void unload(ModelId model) override;
  void input(const InferWork& work) override;
  void output(const InferWork& work) override;
  Status run(const InferWork& work) override;

 private:
  struct Entry {
    std::shared_ptr<const Program> program;
    std::unique_ptr<Executable> executable;
  };
  const Plan& plan_of(const InferWork& work, uint32_t& index) const;

  Device& device_;
  PayloadStore& payloads_;
  std::vector<Entry> entries_;
  // By context of the device: the rows that failed in what was run of its batch.
  std::vector<RowSet> failed_rows_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_WORKER_DEVICE_ENGINE_H_
