// DeviceEngine: the executors' work on a real device.
#ifndef FOLIOT_WORKER_DEVICE_ENGINE_H_
#define FOLIOT_WORKER_DEVICE_ENGINE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "core/payload.h"
#include "device/device.h"
#include "program/package.h"
#include "worker/engine.h"
#include "worker/model_table.h"

namespace foliot {

// Threading: as Engine; add_model(), prepare() and remove_model() belong to the
// control thread. When a model is added or removed, no action for it is outstanding;
// when a batch size is prepared, none of that size.
class DeviceEngine : public Engine {
 public:
  // All references outlive the engine. ModelId values are below `models_max`.
  DeviceEngine(Device& device, PayloadStore& payloads, uint32_t models_max);

  // Makes the model ready to LOAD; none of its batch sizes can run yet. Errors:
  // Device::preload()'s.
  Status add_model(ModelId id, const Package& package);
  // Makes the batch size at this position of Program::batch_sizes ready, in every
  // bucket. Errors: Executable::prepare()'s.
  Status prepare(ModelId id, size_t batch_index);
  void remove_model(ModelId id);

  Status load(ModelId model, std::span<const PageIndex> pages) override;
  void unload(ModelId model) override;
  void input(const InferWork& work) override;
  Status exec(const InferWork& work) override;
  void output(const InferWork& work) override;

 private:
  struct Entry {
    std::shared_ptr<const Program> program;
    std::unique_ptr<Executable> executable;
  };
  const Plan& plan_of(const InferWork& work, uint32_t& index) const;

  Device& device_;
  PayloadStore& payloads_;
  std::vector<Entry> entries_;
};

// How the worker's table describes this program under this page size.
WorkerModel worker_model(ModelId id, const Program& program, uint64_t page_bytes);

}  // namespace foliot

#endif  // FOLIOT_WORKER_DEVICE_ENGINE_H_
